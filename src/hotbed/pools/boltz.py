"""Boltz slots: how many environments of boltz pools may be at work at once on this node.

A slot is leave for one request to be under way. A boltz pool of any number of environments is granted a share of the
node's slots for its life, and its client keeps no more requests under way than that; the others are parked forks that
wait in a read. The environment is loaded once, in the template, and each episode is a fork of it.
"""

from __future__ import annotations

from hotbed.errors import AtCapacity, BoltzUnavailable

HINT = "start the node with `hotbed node --boltz-slots K`, or connect(boltz_slots=K); or use mode='default'"


class Slots:
    """The slots of a node."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total

    def take(self, wanted: int | None) -> int:
        """A share for one pool: what it asks for, or all that are free. Raises when there are none to give."""
        self.check_any()
        if wanted is not None and wanted > self.total:
            raise BoltzUnavailable(f"this node has {self.total} Boltz slots, not {wanted}", hint=HINT)
        if self.free < (wanted or 1):
            raise AtCapacity(
                f"{wanted or 1} Boltz slots were asked for and {self.free} of {self.total} are free",
                hint="close another boltz pool, or ask for fewer slots",
            )
        share = wanted or self.free
        self.free -= share
        return share

    def check_any(self) -> None:
        """Raise `BoltzUnavailable` on a node that loads no env.py ahead."""
        if self.total == 0:
            raise BoltzUnavailable("this node has no Boltz slots", hint=HINT)

    def give_back(self, share: int) -> None:
        """A pool has ended."""
        self.free = min(self.total, self.free + share)
