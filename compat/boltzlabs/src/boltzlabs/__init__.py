"""An alias of Hotbed under the name `boltzlabs`."""
