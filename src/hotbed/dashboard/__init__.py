"""Pages to look at: what the node is doing and has done, read from what it keeps anyway."""
