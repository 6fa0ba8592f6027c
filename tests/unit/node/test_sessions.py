"""Sandboxes that outlive one exec."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hotbed.errors import NotFound, SandboxGone
from hotbed.node.node import Node
from hotbed.node.remembered import Remembered
from hotbed.node.sessions import Session, Sessions, next_deadline
from hotbed.wire.sandboxes import CreateSandbox
from tests.unit.node.nodes import running_node


async def make(node: Node, **fields: Any) -> Session:
    """A session of a new sandbox."""
    return node.sessions.get((await node.create_sandbox(CreateSandbox(template="python", **fields), None)).id)


def test_the_earlier_deadline_counts() -> None:
    """And one in use is not idle."""

    async def scenario() -> None:
        async with running_node() as node:
            session = await make(node, ttl_s=100, idle_ttl_s=10)
            born = session.born_s = session.used_s = 1000.0
            assert next_deadline(session, born + 5) == (1010.0, "idle")
            session.used_s = 1095.0
            assert next_deadline(session, born + 96) == (1100.0, "ttl")
            session.ttl_s = None
            with session.in_use():
                assert next_deadline(session, 2000.0) == (2010.0, "idle")
            session.idle_ttl_s = None
            assert next_deadline(session, 2000.0) is None

    asyncio.run(scenario())


@pytest.mark.parametrize(("fields", "reason"), [({"ttl_s": 0.05}, "ttl_s"), ({"idle_ttl_s": 0.05}, "idle")])
def test_a_sandbox_ends_when_its_time_is_up(fields: dict[str, float], reason: str) -> None:
    """Without anybody asking for it."""

    async def scenario() -> None:
        async with running_node() as node:
            session = await make(node, **fields)
            await asyncio.wait_for(session.held.box.wait_gone(), 5)
            with pytest.raises(SandboxGone, match=reason):
                node.sessions.get(session.id)
            assert len(node.sessions) == 0

    asyncio.run(scenario())


def test_use_puts_the_idle_end_off() -> None:
    """The timer looks again; it does not trust what it saw first."""

    async def scenario() -> None:
        async with running_node() as node:
            session = await make(node, idle_ttl_s=0.05)
            with session.in_use():
                await asyncio.sleep(0.12)
            assert node.sessions.get(session.id) is session
            await asyncio.wait_for(session.held.box.wait_gone(), 5)

    asyncio.run(scenario())


def test_an_ended_name_is_gone_and_an_unknown_one_is_not_found() -> None:
    """The first is the caller's sandbox that ended, the second a mistake."""

    async def scenario() -> None:
        async with running_node() as node:
            session = await make(node)
            await session.held.end("deleted")
            with pytest.raises(SandboxGone, match="deleted"):
                node.sessions.get(session.id)
            with pytest.raises(NotFound):
                node.sessions.get("nobody")
            with pytest.raises(NotFound):
                node.sessions.get(node.sessions.new_id())

    asyncio.run(scenario())


def test_a_name_of_an_earlier_run_of_the_node_is_gone() -> None:
    """A client that survives its node's restart learns what happened."""
    earlier, now = Sessions("aaaa0000"), Sessions("bbbb0000")

    with pytest.raises(SandboxGone, match="restarted"):
        now.get(earlier.new_id())


def test_the_memory_of_ended_names_is_bounded() -> None:
    """A node that runs for a year must not grow."""

    async def scenario() -> None:
        async with running_node() as node:
            node.sessions._ended = Remembered(2)
            ended = [await make(node) for _ in range(3)]
            for session in ended:
                await session.held.end("deleted")
            with pytest.raises(NotFound):
                node.sessions.get(ended[0].id)
            with pytest.raises(SandboxGone):
                node.sessions.get(ended[1].id)

    asyncio.run(scenario())


def test_a_row_tells_what_a_list_shows() -> None:
    """Both template names, for the published client reads either."""

    async def scenario() -> None:
        async with running_node() as node:
            row = (await make(node, label="a", labels={"k": "v"})).row()
            assert row.template == row.template_id == "python"
            assert (row.label, row.labels, row.isolation, row.state) == ("a", {"k": "v"}, "fake", "running")
            assert row.created_at.endswith("Z")

    asyncio.run(scenario())
