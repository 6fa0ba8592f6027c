"""Births give way to programs that have just begun, and to nothing else."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from hotbed.errors import Draining
from hotbed.node import pace
from hotbed.node.pace import BUSY_PER_CORE, Pace
from hotbed.wire.sandboxes import CreateSandbox
from tests.unit.node.nodes import running_node

LONG_S = 3600.0  # instead of a time that a test would have to be faster than
PYTHON = CreateSandbox(template="python")


@pytest.fixture(autouse=True)
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing grows old, and no tick comes, unless a test says so."""
    monkeypatch.setattr(pace, "YOUNG_S", LONG_S)
    monkeypatch.setattr(pace, "TICK_S", LONG_S)


class Crowd:
    """One core, as many programs as let a birth wait, and births that last until this does."""

    def __init__(self, *, programs_of: str = "a", idle: bool = False) -> None:
        self.pace = Pace(cores=1, runnable=lambda: 1 if idle else 2)
        self.born: list[str] = []
        self._over = asyncio.Event()
        self._births: list[asyncio.Task[None]] = []
        self._programs = ExitStack()
        for _ in range(BUSY_PER_CORE):
            self._programs.enter_context(self.pace.program(programs_of))

    async def __aenter__(self) -> Crowd:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.disperse()
        self._over.set()
        await asyncio.wait_for(asyncio.gather(*self._births, return_exceptions=True), 60)

    async def ask(self, *tenants: str) -> list[asyncio.Task[None]]:
        """Births, each of which notes when it begins."""
        births = [asyncio.create_task(self._give_birth(tenant)) for tenant in tenants]
        self._births += births
        await settle()
        return births

    async def disperse(self) -> None:
        """Every program ends."""
        self._programs.close()
        await settle()

    async def _give_birth(self, tenant: str) -> None:
        with self.pace.birth(tenant) as birth:
            await birth.begin()
            self.born.append(tenant)
            await self._over.wait()


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_birth_waits_for_one_of_many_to_end_and_programs_never_do() -> None:
    async def scenario() -> None:
        async with Crowd() as crowd:
            with crowd.pace.program("a"):
                await crowd.ask("a")
            await settle()
            assert crowd.born == []  # one ended, but that was one too many
            await crowd.disperse()
            assert crowd.born == ["a"]

    asyncio.run(scenario())


def test_births_count_as_well_and_give_their_room_back_when_they_fail() -> None:
    async def scenario() -> None:
        async with Crowd() as crowd:
            await crowd.disperse()
            births = await crowd.ask(*["a"] * (BUSY_PER_CORE + 1))
            assert len(crowd.born) == BUSY_PER_CORE
            births[0].cancel()
            await settle()
            assert len(crowd.born) == BUSY_PER_CORE + 1

    asyncio.run(scenario())


def test_one_that_is_cancelled_while_it_waits_takes_no_room() -> None:
    async def scenario() -> None:
        async with Crowd() as crowd:
            first, _ = await crowd.ask("first", "second")
            first.cancel()
            await crowd.disperse()
            assert crowd.born == ["second"]

    asyncio.run(scenario())


def test_whose_fewest_are_busy_comes_first() -> None:
    """A tenant with many programs does not keep another's sandbox back for longer than one of its own."""

    async def scenario() -> None:
        async with Crowd(programs_of="many") as crowd:
            await crowd.ask("many", "few", "many")
            await crowd.disperse()
            assert crowd.born == ["few", "many", "many"]

    asyncio.run(scenario())


def test_what_runs_for_long_keeps_nobody_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with Crowd() as crowd:
            monkeypatch.setattr(pace, "YOUNG_S", 0.0)
            await crowd.ask("a")
            assert crowd.born == ["a"]

    asyncio.run(scenario())


@pytest.mark.parametrize("idle", [True, False])
def test_one_for_each_core_is_let_in_at_a_tick_if_there_is_a_processor_for_it(idle: bool) -> None:
    async def scenario() -> None:
        async with Crowd(idle=idle) as crowd:
            await crowd.ask("a", "a", "a")
            for ticks in (1, 2, 3):
                crowd.pace._tick()
                await settle()
                assert len(crowd.born) == (ticks if idle else 0)

    asyncio.run(scenario())


def test_a_tick_comes_by_itself_while_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "TICK_S", 0.001)

    async def scenario() -> None:
        async with Crowd(idle=True) as crowd:
            await crowd.ask("a", "a", "a")
            while len(crowd.born) < 3:
                await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_sandbox_that_waits_for_its_birth_is_not_made_once_the_node_drains() -> None:
    async def scenario() -> None:
        async with running_node() as node, Crowd() as crowd:
            node.pace = crowd.pace
            waiting = asyncio.create_task(node.create_sandbox(PYTHON, None))
            await settle()
            assert (node.admission.running, node.stats.counts["forks"]) == (1, 0)
            node.draining = True
            await crowd.disperse()
            with pytest.raises(Draining):
                await waiting
            assert (node.admission.running, node.stats.counts["forks"]) == (0, 0)

    asyncio.run(scenario())


def test_a_client_that_goes_while_its_sandbox_waits_gives_its_turn_back() -> None:
    async def scenario() -> None:
        async with running_node() as node, Crowd() as crowd:
            node.pace = crowd.pace
            waiting = asyncio.create_task(node.create_sandbox(PYTHON, None))
            await settle()
            assert node.admission.running == 1
            waiting.cancel()
            await settle()
            assert (waiting.cancelled(), node.admission.running) == (True, 0)

    asyncio.run(scenario())
