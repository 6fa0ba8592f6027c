"""Making and killing sandboxes on Linux."""
