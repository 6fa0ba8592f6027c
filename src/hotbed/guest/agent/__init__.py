"""pid 1 of a sandbox: what it runs, keeps of it, and answers."""
