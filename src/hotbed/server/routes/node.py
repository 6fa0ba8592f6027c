"""The node itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from starlette.responses import Response

from hotbed.node.counters import counted
from hotbed.node.node import Node
from hotbed.server.openapi import document
from hotbed.server.operation import Call
from hotbed.server.routes.templates import is_seen
from hotbed.wire.health import Health


async def health(node: Node, call: Call) -> Health:
    """Whether it is there, and how busy: to a tenant, with its own work only."""
    told = node.health()
    if call.sight is None:
        return told
    admission, tenant = node.admission, call.sight
    return replace(
        told,
        sessions=sum(call.sees(session.held.lease) for session in node.sessions),
        running=admission.held(tenant.id),
        queued=admission.waiting(tenant.id),
        max_inflight=min(told.max_inflight, tenant.tier.sandboxes),
        templates=tuple(name for name in told.templates if is_seen(node, call, name)),
    )


async def capabilities(node: Node, call: Call) -> dict[str, Any]:
    """What this host allows, as doctor shows it."""
    return dict(node.backend.capabilities())


async def stats(node: Node, call: Call) -> dict[str, Any]:
    """Counters and histograms."""
    return counted(node)


async def metrics(node: Node, call: Call) -> Response:
    """What the node counts, for Prometheus."""
    from hotbed.server.metrics import CONTENT_TYPE, exposition  # a node that nobody scrapes need not load it

    return Response(exposition(node), headers={"content-type": CONTENT_TYPE})


async def openapi(node: Node, call: Call) -> Response:
    """What can be asked of this server, for programs. It is made anew each time: it is asked for once."""
    return Response(msgspec.json.encode(document(node.version)), media_type="application/json")
