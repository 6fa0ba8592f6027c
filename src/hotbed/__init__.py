"""Warm, forkable, seeded sandboxes for RL rollouts, on the machine you already have."""

__version__ = "0.1.0"

__all__ = ["__version__"]
