"""Snapshots of environments, and pools' workers made of them."""

from __future__ import annotations

from hotbed.errors import NotFound
from hotbed.node.node import Node
from hotbed.server.operation import Call
from hotbed.wire.sandboxes import Deleted
from hotbed.wire.snapshots import SnapshotList, SnapshotRow, WorkersRestored


async def take(node: Node, call: Call) -> SnapshotRow:
    """Of one worker."""
    node.check_open()
    pool = node.pools.get(call.segment("id"))
    return (await node.snapshots.take(pool, call.body)).row()


async def restore(node: Node, call: Call) -> WorkersRestored:
    """Into workers of a pool."""
    node.check_open()
    return await node.snapshots.restore(node.pools.get(call.segment("id")), call.body)


async def fork(node: Node, call: Call) -> WorkersRestored:
    """One worker into others of its pool."""
    node.check_open()
    return await node.snapshots.fork(node.pools.get(call.segment("id")), call.body)


async def listing(node: Node, call: Call) -> SnapshotList:
    """All that live."""
    return SnapshotList(snapshots=tuple(kept.row() for kept in node.snapshots if call.sees(kept.lease)))


async def delete(node: Node, call: Call) -> Deleted:
    """Free one. Freeing it again is no error."""
    snapshot_id = call.segment("id")
    try:
        node.snapshots.get(snapshot_id).discard("freed")
    except NotFound:
        pass
    return Deleted(id=snapshot_id)
