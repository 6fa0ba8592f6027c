"""One file per kernel mechanism, as far as the node's side needs it; the calls themselves are in `hotbed.guest.kernel`."""
