"""An alias of Hotbed under the name `collimate_rl`."""
