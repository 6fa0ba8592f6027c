"""How many connections the broker begins, of all its sandboxes together.

In one turn of the loop it begins a few only, so that a burst of some sandboxes keeps neither the node's news nor the
others' lookups waiting. And some descriptors are always left: for doors of new sandboxes, and for those that hold few
connections while others hold many. What is not begun now waits in the kernel, behind its door.
"""

from __future__ import annotations

import asyncio
import resource

TURN_MOST = 64
SMALL = 8  # connections that a sandbox may have whatever the others have
_DESCRIPTORS_EACH = 2
_PART_FOR_CONNECTIONS = 3 / 4


def room() -> int:
    """How many connections this process has descriptors for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return int(soft * _PART_FOR_CONNECTIONS) // _DESCRIPTORS_EACH


class Pace:
    """Of one broker. `most` connections at once."""

    def __init__(self, most: int | None = None, *, turn_most: int = TURN_MOST) -> None:
        self._most = room() if most is None else most
        self._turn_most = self._left = turn_most
        self.held = 0

    def admits(self, held: int) -> bool:
        """Whether a sandbox that has so many may begin one more in this turn."""
        if self._left == 0 or (self.held >= self._most and held >= SMALL):
            return False
        if self._left == self._turn_most:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._left -= 1
        return True

    def _next_turn(self) -> None:
        self._left = self._turn_most
