"""Fork, run once, discard."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hotbed.errors import Draining, SandboxGone, UnknownTemplate
from hotbed.node.node import Node
from hotbed.node.rollouts import run_rollout
from hotbed.wire.execs import RolloutRequest
from tests.unit.node.nodes import running_node


def rollout(**fields: Any) -> RolloutRequest:
    """A request."""
    return RolloutRequest(**{"template": "python", **fields})


async def rolled(node: Node, **fields: Any) -> Any:
    """Its answer."""
    return await run_rollout(node, rollout(**fields), None)


def test_a_rollout_leaves_nothing() -> None:
    """Its sandbox is gone soon after its answer, and it shares nothing with the next."""

    async def scenario() -> None:
        async with running_node() as node:
            first = await rolled(node, command="echo $$ > /work/a; ls /work")
            second = await rolled(node, command="ls /work", seed="AB" * 32)
            assert (first.stdout, second.stdout) == ("a\n", "")
            assert (second.seed, second.seed_ack, second.template) == ("ab" * 32, "no-ack", "python")
            assert first.id != second.id
            assert await node.nursery.wait_empty(timeout_s=5)
            assert node.health().running == 0
            assert node.stats.rollout_ms.total == 2

    asyncio.run(scenario())


def test_more_rollouts_than_turns_all_run() -> None:
    """They queue; none is lost, and never more run than may."""

    async def scenario() -> None:
        async with running_node(max_sandboxes=2, queue_limit=20) as node:
            results = await asyncio.gather(*(rolled(node, command=f"exit {n}") for n in range(8)))
            assert [result.exit_code for result in results] == list(range(8))

    asyncio.run(scenario())


def test_a_rollout_ends_with_its_lease() -> None:
    """kill -9 of a trainer ends a rollout that would run for a minute."""

    async def scenario() -> None:
        async with running_node() as node:
            lease = node.leases.open()
            running = asyncio.ensure_future(run_rollout(node, rollout(command="sleep 60"), lease))
            while not len(lease):
                await asyncio.sleep(0.01)
            node.leases.end(lease)
            with pytest.raises(SandboxGone):
                await asyncio.wait_for(running, 5)

    asyncio.run(scenario())


def test_a_rollout_that_is_cancelled_leaves_nothing() -> None:
    """Its client hung up."""

    async def scenario() -> None:
        async with running_node() as node:
            running = asyncio.ensure_future(rolled(node, command="sleep 60"))
            while not node.health().running:
                await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert await node.nursery.wait_empty(timeout_s=5)
            assert node.inflight == 0

    asyncio.run(scenario())


def test_a_rollout_that_cannot_run_is_refused_first() -> None:
    """No turn is taken for it."""

    async def scenario() -> None:
        async with running_node() as node:
            with pytest.raises(UnknownTemplate):
                await rolled(node, template="nope", code="1")
            node.draining = True
            with pytest.raises(Draining):
                await rolled(node, code="1")
            assert node.stats.counts["forks"] == 0

    asyncio.run(scenario())
