"""The stock of parked sandboxes: taken without waiting, filled in quiet moments, ended with its template."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hotbed.errors import SandboxFailed
from hotbed.runtime.demand import COLD_S, FADES_S
from hotbed.runtime.spares import Spares


class FakeBox:
    """A sandbox that is born at once."""

    id = 1

    def __init__(self) -> None:
        self.alive = True
        self.home = self
        self.told: list[Callable[[str], None]] = []

    def kill_box(self, number: int) -> None:
        """What its template does."""
        self.alive = False

    def is_born(self) -> bool:
        """Unless it died."""
        return self.alive

    def is_alive(self) -> bool:
        """As set."""
        return self.alive

    def when_gone(self, call: Callable[[str], None]) -> None:
        """Unless `end` is called, it never is."""
        self.told.append(call)

    def end(self) -> None:
        """By itself."""
        self.alive = False
        for call in self.told:
            call("killed")

    async def ready(self) -> None:
        """It is."""

    async def kill(self) -> None:
        """It was."""
        self.alive = False


def stocked(size: int, test: Callable[[Spares, list[FakeBox]], Awaitable[None]]) -> list[FakeBox]:
    """Run a test with a stock; every box that was made."""
    made: list[FakeBox] = []

    async def make() -> FakeBox:
        made.append(FakeBox())
        return made[-1]

    async def run() -> None:
        spares = Spares(size, make)  # type: ignore[arg-type]  # fake boxes
        await test(spares, made)
        await spares.close()

    asyncio.run(run())
    return made


def test_stock_is_filled_to_its_size_in_a_quiet_moment() -> None:
    """Not while requests come one after the other."""

    async def test(spares: Spares, made: list[FakeBox]) -> None:
        assert spares.take() is None
        await asyncio.sleep(0.05)

        assert len(spares) == 3

    stocked(3, test)


def test_taking_one_waits_for_nothing_and_has_it_replaced() -> None:
    """A request never pays for the next one's."""

    async def test(spares: Spares, made: list[FakeBox]) -> None:
        await spares.wait_parked()
        first = spares.take()
        assert first is not None and len(spares) == 2
        await asyncio.sleep(0.05)

        assert len(spares) == 3 and len(made) == 4

    stocked(3, test)


def test_what_ends_while_it_is_parked_is_replaced() -> None:
    """It was counted as kept, and nobody would have been served by it."""

    async def test(spares: Spares, made: list[FakeBox]) -> None:
        await spares.wait_parked()
        made[1].end()
        assert len(spares) == 2
        await asyncio.sleep(0.05)

        assert len(spares) == 3 and len(made) == 4

    stocked(3, test)


def test_it_is_replaced_when_what_was_taken_has_ended() -> None:
    """Not while that runs, unless it runs for long."""

    async def test(spares: Spares, made: list[FakeBox]) -> None:
        await spares.wait_parked()
        spares.size = 0  # as if nothing were low
        taken = spares.take()
        spares.size = 3
        await asyncio.sleep(0.005)
        before = len(made)
        assert isinstance(taken, FakeBox)
        taken.end()
        await asyncio.sleep(0.02)

        assert (before, len(made)) == (3, 4)

    stocked(3, test)


def test_nothing_is_parked_while_enough_forks_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under load, a spare would cost what it was to save."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})

    async def test(spares: Spares, made: list[FakeBox]) -> None:
        births: list[asyncio.Future[None]] = [asyncio.get_running_loop().create_future() for _ in range(2)]
        for birth in births:
            spares.wait_for(birth)
        await spares.wait_parked()
        assert made == []
        births[0].set_result(None)
        await asyncio.sleep(0.02)

        assert len(made) == 2

    stocked(2, test)


def test_fork_that_takes_long_is_waited_for_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program runs; that is no reason to park nothing."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setattr("hotbed.runtime.spares._BIRTH_S", 0.01)

    async def test(spares: Spares, made: list[FakeBox]) -> None:
        spares.wait_for(asyncio.get_running_loop().create_future())
        await asyncio.sleep(0.05)

        assert len(made) == 1

    stocked(1, test)


def test_dead_spare_is_never_handed_out() -> None:
    """Its template may have been killed meanwhile."""

    async def test(spares: Spares, made: list[FakeBox]) -> None:
        await spares.wait_parked()
        for box in made:
            box.alive = False

        assert spares.take() is None

    stocked(2, test)


def test_stock_of_none_makes_none() -> None:
    """A setting for those who count memory."""

    async def test(spares: Spares, made: list[FakeBox]) -> None:
        spares.refill_soon()
        await asyncio.sleep(0.02)

    assert stocked(0, test) == []


def test_those_for_few_are_made_from_the_first_use_on() -> None:
    """Looking after them is no use."""

    async def make() -> FakeBox:
        return FakeBox()

    async def run() -> None:
        spares = Spares(2, make, most=2, from_first_use=True)  # type: ignore[arg-type]  # fake boxes
        await spares.tend()
        await asyncio.sleep(0.02)
        assert len(spares) == 0
        spares.take()
        await asyncio.sleep(0.02)
        assert len(spares) == 2
        await spares.close()

    asyncio.run(run())


def test_closing_ends_them_all() -> None:
    """The one that is being made included."""

    async def test(spares: Spares, made: list[FakeBox]) -> None:
        await spares.wait_parked()

    assert all(not box.alive for box in stocked(3, test))


def test_failure_to_make_one_is_tried_again_later() -> None:
    """And is no failure of any request."""

    async def fail() -> FakeBox:
        raise SandboxFailed("not now")

    async def run() -> None:
        spares = Spares(1, fail)  # type: ignore[arg-type]  # fake boxes
        spares.refill_soon()
        await asyncio.sleep(0.02)
        assert len(spares) == 0
        await spares.close()

    asyncio.run(run())


def test_spares_are_let_go_when_memory_is_short() -> None:
    """And made again when it is not."""

    async def test(spares: Spares, made: list[FakeBox]) -> None:
        memory: Any = SimpleNamespace(is_short=lambda: False, available_mib=lambda: 1000)
        lot = spares._lot
        lot.memory = memory
        lot.look()
        await spares.wait_parked()
        memory.is_short = lambda: True
        lot.look()
        await spares.tend()
        assert (len(spares), [box.alive for box in made]) == (0, [False, False])
        memory.is_short = lambda: False
        lot.look()
        await spares.tend()
        await spares.wait_parked()
        assert len(spares) == 2

    stocked(2, test)


class Frost:
    """Notes who is still."""

    def __init__(self) -> None:
        self.still: set[Any] = set()

    async def begin(self, box: Any) -> None:
        """Hold it."""
        if not box.alive:
            raise SandboxFailed("it cannot be")
        self.still.add(box)

    async def end(self, box: Any) -> None:
        """Let it go."""
        self.still.discard(box)

    async def reclaim(self, box: Any) -> int:
        """Nothing."""
        return 0


def test_those_of_a_cold_template_are_frozen_then_dropped() -> None:
    """After a quarter of an hour and an hour; a request in between thaws them and is served."""
    now, frost = [0.0], Frost()

    async def make() -> Any:
        return FakeBox()

    async def scenario() -> None:
        spares = Spares(4, make, clock=lambda: now[0])
        spares.freezing = lambda: frost
        await spares.wait_parked()
        now[0] = COLD_S + 1
        await spares.tend()
        assert (len(spares), spares.frozen, len(frost.still)) == (3, 3, 3)
        assert spares.take() is None
        await spares.thaw()
        assert spares.take() is not None and (spares.frozen, len(frost.still)) == (0, 0)
        now[0] += FADES_S + 1
        await spares.tend()
        assert len(spares) == 0
        await spares.close()

    asyncio.run(scenario())


def test_one_whose_thaw_nobody_waits_for_ends() -> None:
    """It is in no stock any more."""

    class Slow(Frost):
        async def end(self, box: Any) -> None:
            await asyncio.sleep(60)

    now, made = [0.0], list[FakeBox]()

    async def make() -> Any:
        made.append(FakeBox())
        return made[-1]

    async def scenario() -> None:
        frost = Slow()
        spares = Spares(1, make, clock=lambda: now[0])
        spares.freezing = lambda: frost
        await spares.wait_parked()
        now[0] = COLD_S + 1
        await spares.tend()
        assert spares.frozen == 1
        thawing = asyncio.ensure_future(spares.thaw())
        await asyncio.sleep(0)
        thawing.cancel()
        await asyncio.gather(thawing, return_exceptions=True)
        assert spares.frozen == 0 and not made[0].alive
        await spares.close()

    asyncio.run(scenario())


def test_one_that_cannot_be_frozen_is_let_go() -> None:
    """It is the host's affair, and no reason to keep it as if it were."""
    now = [0.0]

    async def make() -> Any:
        return FakeBox()

    async def scenario() -> None:
        spares = Spares(2, make, clock=lambda: now[0])
        spares.freezing = Frost
        await spares.wait_parked()
        for box in spares._stock:
            box.alive = False  # type: ignore[attr-defined]  # fake boxes
        now[0] = COLD_S + 1
        await spares.tend()
        assert len(spares) == 0
        await spares.close()

    asyncio.run(scenario())


def test_a_hint_that_is_taken_back_lets_go_at_once() -> None:
    """The memory is somebody else's from then on."""

    async def test(spares: Spares, made: list[FakeBox]) -> None:
        await spares.wait_parked()
        spares.demand.expect(0, spares.clock())
        spares.tend_soon()
        await asyncio.sleep(0.01)

        assert len(spares) == 0

    stocked(3, test)


def test_failing_to_make_one_is_not_tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty stock is filled without delay, but not one that cannot be filled."""
    tries: list[int] = []

    async def fail() -> Any:
        tries.append(1)
        raise SandboxFailed("no")

    async def scenario() -> None:
        spares = Spares(8, fail)
        spares.refill_soon()
        await asyncio.sleep(0.05)
        await spares.close()

    asyncio.run(scenario())
    assert len(tries) == 1
