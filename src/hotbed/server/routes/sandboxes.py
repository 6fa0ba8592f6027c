"""Sandboxes that are kept."""

from __future__ import annotations

import asyncio

from hotbed.errors import SandboxGone
from hotbed.node.node import Node
from hotbed.node.selecting import selected
from hotbed.server.operation import Call
from hotbed.wire.sandboxes import Deleted, SandboxCreated, SandboxesDeleted, SandboxList, SandboxRow


async def create(node: Node, call: Call) -> SandboxCreated:
    """Fork one."""
    return await node.create_sandbox(call.body, call.lease)


async def listing(node: Node, call: Call) -> SandboxList:
    """All that live."""
    return SandboxList(sandboxes=tuple(s.row() for s in node.sessions if call.sees(s.held.lease)))


async def get(node: Node, call: Call) -> SandboxRow:
    """One that lives."""
    return node.sessions.get(call.segment("id")).row()


async def delete(node: Node, call: Call) -> Deleted:
    """Kill one; what is left of it is cleared up behind the answer. Ending it again is no error."""
    session_id = call.segment("id")
    try:
        await node.sessions.get(session_id).held.kill("deleted")
    except SandboxGone:
        pass
    return Deleted(id=session_id)


async def delete_many(node: Node, call: Call) -> SandboxesDeleted:
    """End all that a selector means, at once; the answer comes when nothing of them is left."""
    found = selected((session for session in node.sessions if call.sees(session.held.lease)), call.body)
    await asyncio.gather(*(session.held.end("deleted") for session in found))
    return SandboxesDeleted(ids=tuple(session.id for session in found))
