"""The ways of making sandboxes, one contract."""
