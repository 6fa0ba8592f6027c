"""Everything that a node counts."""

from __future__ import annotations

import asyncio

from hotbed.node.counters import counted
from hotbed.runtime.base import BoxRequest
from hotbed.wire.sandboxes import CreateSandbox
from tests.unit.node.nodes import running_node


def test_every_sandbox_is_in_one_state() -> None:
    """What is kept, what is used for a moment, and what ends."""

    async def scenario() -> None:
        async with running_node() as node:
            made = await node.create_sandbox(CreateSandbox(template="python"), None)
            held = await node.fork(await node.templates.plain("python"), BoxRequest(), None)
            assert counted(node)["node"]["sandboxes"] == {"idle": 1, "busy": 0, "used": 1, "ending": 0}
            held.discard("test")
            with node.sessions.get(made.id).in_use():
                assert counted(node)["node"]["sandboxes"] == {"idle": 0, "busy": 1, "used": 0, "ending": 1}

    asyncio.run(scenario())
