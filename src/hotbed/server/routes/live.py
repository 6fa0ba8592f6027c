"""Live operations on sandboxes that are kept."""

from __future__ import annotations

from hotbed.errors import TierLimit
from hotbed.node import live
from hotbed.node.node import Node
from hotbed.node.sessions import Session
from hotbed.server.operation import Call
from hotbed.wire.live import SandboxForked, SandboxState
from hotbed.wire.snapshots import SnapshotRow


async def fork(node: Node, call: Call) -> SandboxForked:
    """Into as many as the tier allows at once."""
    session = _named(node, call)
    if call.tenant is not None and call.body.count > call.tenant.tier.fork:
        tier = call.tenant.tier
        raise TierLimit(
            f"count is {call.body.count}, and tier {tier.name} allows {tier.fork} children at once",
            hint="take a snapshot and start sandboxes with it, or ask the operator of this server for another tier",
        )
    return await live.fork(node, session, call.body)


async def snapshot(node: Node, call: Call) -> SnapshotRow:
    """Of its files."""
    return (await live.snapshot(node, _named(node, call), call.body)).row()


async def suspend(node: Node, call: Call) -> SandboxState:
    """Until it is resumed."""
    return await live.suspend(node, _named(node, call))


async def resume(node: Node, call: Call) -> SandboxState:
    """Let it go on."""
    return await live.resume(node, _named(node, call))


def _named(node: Node, call: Call) -> Session:
    return node.sessions.get(call.segment("id"), call.sight)
