"""The chores of a node."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hotbed.node.housekeeping import LEAK_LOOKS
from hotbed.node.ledger.ledger import Ledger
from hotbed.node.ledger.usage import totals
from hotbed.runtime.base import BoxRequest
from hotbed.wire.sandboxes import CreateSandbox
from tests.unit.node.nodes import running_node


def test_a_living_sandbox_is_metered_as_it_goes(tmp_path: Path) -> None:
    """A node that is killed must not have given a day away; what is told again replaces what was told."""

    async def scenario() -> None:
        async with running_node() as node:
            node.ledger = Ledger(tmp_path)
            await node.create_sandbox(CreateSandbox(template="python"), None)
            told = []
            for _ in range(2):
                await asyncio.sleep(0.002)
                node.housekeeping.keep_usage()
                told += node.ledger.read(lambda store: totals(store, since=0, until=2e10))
            assert [(used["tenant"], used["sandboxes"]) for used in told] == [("", 1), ("", 1)]
            assert 0 < told[0]["sandbox_s"] <= told[1]["sandbox_s"]

    asyncio.run(scenario())


def test_what_nobody_knows_of_for_a_minute_is_a_leak(caplog: pytest.LogCaptureFixture) -> None:
    """A look may fall between a fork and its owner, and a fork may take its time."""

    async def scenario() -> None:
        async with running_node() as node:
            template = await node.templates.plain("python")
            lost = await template.fork(BoxRequest())
            looks = [node.housekeeping.look_for_leaks() for _ in range(LEAK_LOOKS + 2)]
            await lost.kill()
            looks += [node.housekeeping.look_for_leaks() for _ in range(2)]

            assert looks == [0] * LEAK_LOOKS + [1, 0, 0, 0]
            assert node.stats.counts["leaks"] == 1

    asyncio.run(scenario())
    assert "event=leak sandboxes=1" in caplog.text


def test_a_node_that_makes_and_ends_sandboxes_all_the_time_has_no_leak() -> None:
    """Whenever one looks, some are on their way; never the same."""

    async def scenario() -> None:
        async with running_node() as node:
            template = await node.templates.plain("python")
            for _ in range(2 * LEAK_LOOKS):
                passing = await template.fork(BoxRequest())
                assert node.housekeeping.look_for_leaks() == 0
                await passing.kill()

    asyncio.run(scenario())


def test_what_is_held_is_no_leak() -> None:
    """However often one looks."""

    async def scenario() -> None:
        async with running_node() as node:
            await node.create_sandbox(CreateSandbox(template="python"), None)

            assert {node.housekeeping.look_for_leaks() for _ in range(2 * LEAK_LOOKS)} == {0}

    asyncio.run(scenario())


def test_what_a_bake_uses_is_no_leak() -> None:
    """A setup command may run for as long as it likes."""

    async def scenario() -> None:
        async with running_node() as node:
            template = await node.templates.plain("python")
            async with node.bakes._baker._box(template, BoxRequest()):
                assert {node.housekeeping.look_for_leaks() for _ in range(2 * LEAK_LOOKS)} == {0}

    asyncio.run(scenario())
