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


@pytest.fixture(autouse=True)
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing grows old, and no tick comes, unless a test says so."""
    monkeypatch.setattr(pace, "YOUNG_S", LONG_S)
    monkeypatch.setattr(pace, "TICK_S", LONG_S)


def crowded(*, idle: bool = False) -> Pace:
    """One core, and whether it has nothing to do."""
    return Pace(cores=1, runnable=lambda: 1 if idle else 2)


def fill(it: Pace, stack: ExitStack, tenant: str = "a") -> None:
    """As many programs as let a birth wait."""
    for _ in range(BUSY_PER_CORE):
        stack.enter_context(it.program(tenant))


async def give_birth(it: Pace, tenant: str, born: list[str], until: asyncio.Event) -> None:
    """A birth that notes when it began, and ends when it is told to."""
    with it.birth(tenant) as birth:
        await birth.begin()
        born.append(tenant)
        await until.wait()


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_birth_waits_for_one_of_many_to_end_and_programs_never_do() -> None:
    async def scenario() -> None:
        it, end = crowded(), asyncio.Event()
        born: list[str] = []
        with ExitStack() as programs:
            fill(it, programs)
            with it.program("a"):
                waiting = asyncio.create_task(give_birth(it, "a", born, end))
                await settle()
                assert born == []
            await settle()
            assert born == []  # one ended, but that was one too many
        await settle()
        assert born == ["a"]
        end.set()
        await waiting

    asyncio.run(scenario())


def test_births_count_as_well_and_give_their_room_back_when_they_fail() -> None:
    async def scenario() -> None:
        it, end = crowded(), asyncio.Event()
        born: list[str] = []
        births = [asyncio.create_task(give_birth(it, "a", born, end)) for _ in range(BUSY_PER_CORE + 1)]
        await settle()
        assert len(born) == BUSY_PER_CORE
        births[0].cancel()
        await settle()
        assert len(born) == BUSY_PER_CORE + 1
        end.set()
        await asyncio.gather(*births, return_exceptions=True)

    asyncio.run(scenario())


def test_one_that_is_cancelled_while_it_waits_takes_no_room() -> None:
    async def scenario() -> None:
        it, end = crowded(), asyncio.Event()
        born: list[str] = []
        with ExitStack() as programs:
            fill(it, programs)
            first = asyncio.create_task(give_birth(it, "first", born, end))
            second = asyncio.create_task(give_birth(it, "second", born, end))
            await settle()
            first.cancel()
        await settle()
        assert born == ["second"]
        end.set()
        await second

    asyncio.run(scenario())


def test_whose_fewest_are_busy_comes_first() -> None:
    """A tenant with many programs does not keep another's sandbox back for longer than one of its own."""

    async def scenario() -> None:
        it, end = crowded(), asyncio.Event()
        born: list[str] = []
        with ExitStack() as programs:
            fill(it, programs, "many")
            births = [asyncio.create_task(give_birth(it, who, born, end)) for who in ("many", "few", "many")]
            await settle()
        await settle()
        assert born[0] == "few"
        end.set()
        await asyncio.gather(*births)

    asyncio.run(scenario())


def test_what_runs_for_long_keeps_nobody_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        it, end = crowded(), asyncio.Event()
        born: list[str] = []
        with ExitStack() as programs:
            fill(it, programs)
            monkeypatch.setattr(pace, "YOUNG_S", 0.0)
            end.set()
            await give_birth(it, "a", born, end)

    asyncio.run(scenario())


@pytest.mark.parametrize("idle", [True, False])
def test_one_for_each_core_is_let_in_at_a_tick_if_there_is_a_processor_for_it(
    idle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        it, end = crowded(idle=idle), asyncio.Event()
        born: list[str] = []
        with ExitStack() as programs:
            fill(it, programs)
            births = [asyncio.create_task(give_birth(it, "a", born, end)) for _ in range(3)]
            await settle()
            for ticks in (1, 2, 3):
                it._tick()
                await settle()
                assert len(born) == (ticks if idle else 0)
        end.set()
        await asyncio.gather(*births)

    asyncio.run(scenario())


def test_a_tick_comes_by_itself_while_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "TICK_S", 0.001)

    async def scenario() -> None:
        it, end = crowded(idle=True), asyncio.Event()
        born: list[str] = []
        with ExitStack() as programs:
            fill(it, programs)
            end.set()
            await asyncio.wait_for(asyncio.gather(*(give_birth(it, "a", born, end) for _ in range(3))), 60)

    asyncio.run(scenario())


def test_a_sandbox_that_waits_for_its_birth_is_not_made_once_the_node_drains() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            node.pace = crowded()
            with ExitStack() as programs:
                fill(node.pace, programs)
                waiting = asyncio.create_task(node.create_sandbox(CreateSandbox(template="python"), None))
                await settle()
                assert (node.admission.running, node.stats.counts["forks"]) == (1, 0)
                node.draining = True
            with pytest.raises(Draining):
                await waiting
            assert (node.admission.running, node.stats.counts["forks"]) == (0, 0)

    asyncio.run(scenario())


def test_a_client_that_goes_while_its_sandbox_waits_gives_its_turn_back() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            node.pace = crowded()
            with ExitStack() as programs:
                fill(node.pace, programs)
                waiting = asyncio.create_task(node.create_sandbox(CreateSandbox(template="python"), None))
                await settle()
                waiting.cancel()
                await settle()
                assert (waiting.cancelled(), node.admission.running) == (True, 0)

    asyncio.run(scenario())
