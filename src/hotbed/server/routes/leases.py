"""Holding a lease: a response that lasts as long as the client does."""

from __future__ import annotations

from hotbed.node.node import Node
from hotbed.server.connection import Emit, Stream
from hotbed.server.operation import Call
from hotbed.server.streams import line
from hotbed.wire.health import LeaseGranted
from hotbed.wire.routes import NDJSON


async def hold(node: Node, call: Call) -> Stream:
    """Grant a lease and hold it until the client hangs up or the node drains."""
    node.check_open()
    ttl_s = node.policy.lease_ttl_s

    async def produce(emit: Emit) -> None:
        lease = node.leases.open(call.tenant)
        try:
            await emit(line(LeaseGranted(lease_id=lease.id, ttl_s=ttl_s)))
            while not await lease.wait_over(ttl_s / 3):
                await emit(b"\n")
        finally:
            node.leases.end(lease)

    return Stream(produce, media_type=NDJSON)
