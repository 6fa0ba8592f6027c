"""How many connections the broker begins, of all its sandboxes together.

In one turn of the loop it begins a few only, so that a burst of some sandboxes keeps neither the node's news nor the
others' lookups waiting. And some descriptors are always left: for doors of new sandboxes, and for those that hold few
connections while others hold many. What is not begun now waits in the kernel, behind its door.

Who may not begin because there is no room, or finds no descriptor free, is not heard until there may be: a door at
which something waits would call the loop again and again. Each end lets the one go on that has waited longest, and
`wake` all of them, for what ends elsewhere on this machine.
"""

from __future__ import annotations

import asyncio
import errno
import resource
from typing import Protocol

NONE_FREE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)  # what accept(2) says then
TURN_MOST = 64
SMALL = 8  # connections that a sandbox may have whatever the others have
_DESCRIPTORS_EACH = 2
_PART_FOR_CONNECTIONS = 3 / 4


def room() -> int:
    """How many connections this process has descriptors for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return int(soft * _PART_FOR_CONNECTIONS) // _DESCRIPTORS_EACH


class Resting(Protocol):
    """Who has doors that are not heard."""

    def wake(self) -> None:
        """Hear them again. Idempotent."""
        ...


class Pace:
    """Of one broker. `most` connections at once."""

    def __init__(self, most: int | None = None, *, turn_most: int = TURN_MOST) -> None:
        self._most = room() if most is None else most
        self._turn_most = self._left = turn_most
        self._resting: dict[Resting, None] = {}  # in the order in which they came
        self.held = 0

    def has_room(self, held: int) -> bool:
        """Whether there is room for one more of a sandbox that has so many."""
        return self.held < self._most or held < SMALL

    def admits(self, held: int) -> bool:
        """Whether a sandbox that has so many may begin one more in this turn."""
        if self._left == 0 or not self.has_room(held):
            return False
        if self._left == self._turn_most:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._left -= 1
        return True

    def begun(self) -> None:
        """A connection was."""
        self.held += 1

    def ended(self) -> None:
        """One is over, and what it held is free."""
        self.held -= 1
        if self._resting and self.held < self._most:
            self.resume(next(iter(self._resting)))

    def rest(self, who: Resting) -> None:
        """Wake it when there may be room."""
        self._resting[who] = None

    def resume(self, who: Resting) -> None:
        """Wake it now, if it rests."""
        if who in self._resting:
            del self._resting[who]
            who.wake()

    def wake(self) -> None:
        """All of them."""
        for who in tuple(self._resting):
            self.resume(who)

    def _next_turn(self) -> None:
        self._left = self._turn_most
