"""The room for parked sandboxes, and the turns at parking one, as all templates of a node share them.

Room is divided evenly: who wants less than an even part gets all of that, and what is left is divided among the rest.
So a template that wants much takes what the others leave, and none of what they need. It is counted in MiB, by what a
spare of each template takes, and is a part of the memory that the machine has available: less, as that falls, and none
while the kernel reports pressure.

Parking takes CPU from what runs. So it is done in turns, by half of the CPUs at most, and the stock that has fewest
is next. A turn is over after a moment, also when a sandbox takes longer to come up: it then waits for
something else, and must not keep the others.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Protocol

from hotbed.runtime.linux.pressure import Memory

_TURN_S = 0.25
_TOLD_S = 0.1
_PART = 4  # of what is available


class Stock(Protocol):
    """Who parks."""

    cost_mib: int

    def wanted(self) -> int:
        """How many it would like to have."""
        ...

    def fills(self) -> bool:
        """Whether it would begin to make one now."""
        ...

    def missing(self, share: int) -> int:
        """How many it has yet to make of its share."""
        ...

    def held(self) -> int:
        """How many it has or makes."""
        ...

    def make(self) -> asyncio.Future[None]:
        """Begin to make one."""
        ...


class Lot:
    """One node's."""

    def __init__(self, memory: Memory | None = None) -> None:
        self.memory = memory or Memory()
        self.room_mib = 0
        self.look()
        self._stocks: list[Stock] = []
        self._turns = max(1, len(os.sched_getaffinity(0)) // 2)
        self._taken = 0
        self._told: tuple[float, dict[Stock, int]] = (0.0, {})

    def join(self, stock: Stock) -> None:
        """A template parks here from now on."""
        self._stocks.append(stock)

    def leave(self, stock: Stock) -> None:
        """It parks no more. Idempotent."""
        if stock in self._stocks:
            self._stocks.remove(stock)

    def look(self) -> None:
        """See how much memory there is."""
        self.room_mib = 0 if self.memory.is_short() else self.memory.available_mib() // _PART

    def share(self, stock: Stock) -> int:
        """How many of a stock there is room for, of those that it wants."""
        return self._shares().get(stock, 0)

    def told_share(self, stock: Stock) -> int:
        """The same as of a moment ago: for lists, in which it is asked of each."""
        if time.monotonic() - self._told[0] > _TOLD_S:
            self._told = (time.monotonic(), self._shares())
        return self._told[1].get(stock, 0)

    def _shares(self) -> dict[Stock, int]:
        parts = divided(self.room_mib, [stock.wanted() * stock.cost_mib for stock in self._stocks])
        return {stock: part // stock.cost_mib for stock, part in zip(self._stocks, parts, strict=True)}

    def fill(self) -> None:
        """Give the free turns to those who have fewest, of those who want more."""
        while self._taken < self._turns and (filling := [stock for stock in self._stocks if stock.fills()]):
            shares = self._shares()
            missing = [stock for stock in filling if stock.missing(shares[stock]) > 0]
            if not missing:
                return
            stock = min(missing, key=lambda one: one.held())
            self._stocks.remove(stock)  # to the end: of equals, who was last served longest ago is next
            self._stocks.append(stock)
            self._taken += 1
            _Turn(self, stock.make())

    def turn_over(self) -> None:
        """Somebody else may park."""
        self._taken -= 1
        self.fill()


class _Turn:
    """Ends once: with what is made in it, or after a moment."""

    def __init__(self, lot: Lot, making: asyncio.Future[None]) -> None:
        self._lot: Lot | None = lot
        self._timer = asyncio.get_running_loop().call_later(_TURN_S, self._end)
        making.add_done_callback(self._end)

    def _end(self, _: object = None) -> None:
        lot, self._lot = self._lot, None
        self._timer.cancel()
        if lot is not None:
            lot.turn_over()


def divided(room: int, wants: Sequence[int]) -> list[int]:
    """As even as can be: nobody gets more than it wants, and nobody less than another unless it wants less."""
    parts, left = [0] * len(wants), room
    for done, number in enumerate(sorted(range(len(wants)), key=lambda number: wants[number])):
        parts[number] = min(wants[number], left // (len(wants) - done))
        left -= parts[number]
    return parts
