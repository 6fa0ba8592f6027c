"""The environment's side of a pool, under the name that the published examples import."""

from hotbed.env import serve

__all__ = ["serve"]
