"""Running things: in a sandbox that is kept, or in one made for it. With `stream`, output comes as it happens."""

from __future__ import annotations

from functools import partial
from typing import Any

from hotbed.node.execs import run_exec
from hotbed.node.node import Node
from hotbed.node.rollouts import run_rollout
from hotbed.server.operation import Call
from hotbed.server.streams import stream_exec


async def run_in_sandbox(node: Node, call: Call) -> Any:
    """One exec in a sandbox that is kept."""
    session = node.sessions.get(call.segment("id"))
    if call.body.stream:
        return stream_exec(partial(run_exec, node, session.id, call.body))
    return await run_exec(node, session.id, call.body)


async def rollout(node: Node, call: Call) -> Any:
    """Fork, run once, discard."""
    if call.body.stream:
        return stream_exec(partial(run_rollout, node, call.body, call.lease))
    return await run_rollout(node, call.body, call.lease)
