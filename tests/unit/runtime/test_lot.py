"""The room for parked sandboxes is shared out evenly, and so are the turns at parking."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from hotbed.runtime.lot import Lot, divided


@pytest.mark.parametrize(
    ("room", "wants", "parts"),
    [
        (10, [2, 3], [2, 3]),
        (10, [64, 2], [8, 2]),
        (10, [64, 2, 64], [4, 2, 4]),
        (9, [64, 64], [4, 5]),
        (0, [1, 2], [0, 0]),
        (5, [], []),
        (7, [0, 9], [0, 7]),
    ],
)
def test_who_wants_much_gets_what_the_others_leave(room: int, wants: list[int], parts: list[int]) -> None:
    """And never what they need."""
    assert divided(room, wants) == parts


class Memory:
    """Memory as a test wants it."""

    short = False

    def __init__(self, mib: int) -> None:
        self.mib = mib

    def is_short(self) -> bool:
        """As set."""
        return self.short

    def available_mib(self) -> int:
        """As set."""
        return self.mib


class Stock:
    """Makes what it is given turns for, when the test says so."""

    def __init__(self, name: str, wants: int, made: list[str], cost_mib: int = 1) -> None:
        self.name, self.wants, self.made, self.cost_mib = name, wants, made, cost_mib
        self.have = 0
        self.makings: list[asyncio.Future[None]] = []

    def wanted(self) -> int:
        """As many."""
        return self.wants

    def fills(self) -> bool:
        """Always."""
        return True

    def missing(self, share: int) -> int:
        """What there is and what is being made are not."""
        return share - self.have

    def held(self) -> int:
        """Those made."""
        return self.have

    def make(self) -> asyncio.Future[None]:
        """Begin."""
        self.have += 1
        self.made.append(self.name)
        self.makings.append(asyncio.get_running_loop().create_future())
        return self.makings[-1]


async def done(stock: Stock) -> None:
    """What it makes is made."""
    stock.makings[-1].set_result(None)
    for _ in range(3):
        await asyncio.sleep(0)


def lot_of(monkeypatch: pytest.MonkeyPatch, *, mib: int, cpus: int = 2) -> Lot:
    """One turn for each pair of CPUs."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
    memory: Any = Memory(mib)
    return Lot(memory)


def test_a_template_that_always_wants_more_does_not_keep_another_from_parking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns go to who has fewest; the one that wants 64 waits for the one that wants 2."""

    async def scenario() -> None:
        made: list[str] = []
        lot = lot_of(monkeypatch, mib=1000)
        busy, calm = Stock("busy", 64, made), Stock("calm", 2, made)
        lot.join(busy)
        lot.fill()
        for _ in range(10):
            await done(busy)
        lot.join(calm)
        for stock in (busy, calm, calm, busy):
            await done(stock)

        assert made[11:14] == ["calm", "calm", "busy"]

    asyncio.run(scenario())


def test_room_is_a_part_of_what_is_available_and_none_when_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spare of 8 MiB finds room where one of 64 does not."""
    made: list[str] = []
    lot = lot_of(monkeypatch, mib=400)
    small, large = Stock("small", 64, made, cost_mib=8), Stock("large", 64, made, cost_mib=64)
    lot.join(small)
    lot.join(large)

    assert (lot.room_mib, lot.share(small), lot.share(large)) == (100, 6, 0)
    lot.memory.short = True  # type: ignore[attr-defined]  # the test's own
    lot.look()
    assert (lot.share(small), lot.share(large)) == (0, 0)
    lot.leave(small)
    lot.leave(small)
    assert lot.share(small) == 0


def test_one_that_takes_long_to_come_up_keeps_no_other_from_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for something else by then."""
    monkeypatch.setattr("hotbed.runtime.lot._TURN_S", 0.001)

    async def scenario() -> None:
        made: list[str] = []
        lot = lot_of(monkeypatch, mib=1000)
        for name in ("slow", "quick"):
            lot.join(Stock(name, 1, made))
        lot.fill()
        assert made == ["slow"]
        while len(made) < 2:
            await asyncio.sleep(0.001)

        assert made == ["slow", "quick"]

    asyncio.run(scenario())


def test_no_more_are_made_at_once_than_half_of_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs needs the rest."""

    async def scenario() -> None:
        made: list[str] = []
        lot = lot_of(monkeypatch, mib=1000, cpus=6)
        lot.join(Stock("one", 64, made))
        lot.fill()

        assert len(made) == 3

    asyncio.run(scenario())
