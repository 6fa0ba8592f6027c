"""The stock of parked sandboxes: taken without waiting, filled in quiet moments, ended with its template."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hotbed.errors import SandboxFailed
from hotbed.runtime import spares as module
from hotbed.runtime.spares import Spares


class FakeBox:
    """A sandbox that is born at once."""

    def __init__(self) -> None:
        self.alive = True

    def is_born(self) -> bool:
        """Unless it died."""
        return self.alive

    def is_alive(self) -> bool:
        """As set."""
        return self.alive

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
        assert first is not None and len(spares) == 1
        await asyncio.sleep(0.05)

        assert len(spares) == 2 and len(made) == 3

    stocked(2, test)


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
        spares = Spares(2, make, from_first_use=True)  # type: ignore[arg-type]  # fake boxes
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


def test_spares_are_let_go_when_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """And made again when it is not."""

    async def scenario() -> None:
        made: list[Any] = []

        class Parked:
            """A box that is ready."""

            def __init__(self) -> None:
                self.alive = True
                made.append(self)

            async def ready(self) -> None:
                """It is."""

            def is_born(self) -> bool:
                """Until it is killed."""
                return self.alive

            is_alive = is_born

            async def kill(self) -> None:
                """End it."""
                self.alive = False

        async def make() -> Any:
            return Parked()

        spares = Spares(2, make)
        await spares.wait_parked()
        monkeypatch.setattr(module, "memory_is_short", lambda: True)
        await spares.tend()
        await asyncio.sleep(0.02)
        assert (len(spares), [box.alive for box in made]) == (0, [False, False])
        monkeypatch.setattr(module, "memory_is_short", lambda: False)
        await spares.tend()
        await spares.wait_parked()
        assert len(spares) == 2
        await spares.close()

    asyncio.run(scenario())
