"""Copying a running environment into another sandbox, from outside. See `docs/concepts/livefork.md`."""
