"""Holding a lease: a response that lasts as long as the client does, and a while longer for one that asks for it."""

from __future__ import annotations

from hotbed.errors import LeaseGone
from hotbed.node.leases import Lease
from hotbed.node.node import Node
from hotbed.server.connection import Emit, Stream
from hotbed.server.operation import Call
from hotbed.server.streams import line
from hotbed.wire.health import LeaseGranted
from hotbed.wire.routes import NDJSON
from hotbed.wire.sandboxes import Deleted


async def hold(node: Node, call: Call) -> Stream:
    """Grant a lease, or take up one again, and hold it until the client hangs up or the node drains."""
    node.check_open()
    ttl_s, query = node.policy.lease_ttl_s, call.request.query_params
    kept = _own(node, call, query["id"]) if "id" in query else None
    patience_s = ttl_s if kept is not None or query.get("renew") == "true" else 0.0

    async def produce(emit: Emit) -> None:
        lease = kept or node.leases.open(call.tenant)
        holder = node.leases.hold(lease)
        try:
            await emit(line(LeaseGranted(lease_id=lease.id, ttl_s=ttl_s)))
            while holder == lease.holder and not await lease.wait_over(ttl_s / 3):
                await emit(b"\n")
        finally:
            node.leases.let_go(lease, holder, patience_s=patience_s)

    return Stream(produce, media_type=NDJSON)


async def release(node: Node, call: Call) -> Deleted:
    """End a lease now, and everything made under it."""
    lease = _own(node, call, call.segment("id"))
    node.leases.end(lease)
    return Deleted(id=lease.id)


def _own(node: Node, call: Call, lease_id: str) -> Lease:
    """A lease that the caller holds, or held until a moment ago. Raises `LeaseGone`."""
    lease = node.leases.get(lease_id)
    if lease is None or lease.tenant is not call.tenant:
        raise LeaseGone("that lease is not held here", hint="its connection ended, or the node restarted")
    return lease
