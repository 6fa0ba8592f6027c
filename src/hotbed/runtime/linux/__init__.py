"""One file per kernel mechanism, as far as the node's side needs it; the calls are those of `hotbed.guest.kernel`."""
