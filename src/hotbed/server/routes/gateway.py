"""The published gateway's wire: sandboxes. Its templates are in `catalog`.

What this node cannot do yet is refused by name with 501, after the checks that any answer would need: whose sandbox it
is, and whether the request makes sense.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

from hotbed.errors import InvalidRequest, NotFound, SandboxGone
from hotbed.node import live, replays
from hotbed.node.execs import run_exec
from hotbed.node.ledger.usage import NOTHING, totals
from hotbed.node.node import Node
from hotbed.node.sessions import Session
from hotbed.server.operation import Call, Handler
from hotbed.server.published import route, session_id
from hotbed.server.routes.tunnels import mint
from hotbed.server.tenancy import own_lease, own_template
from hotbed.wire import collimate
from hotbed.wire.checks import require
from hotbed.wire.collimate import SANDBOX
from hotbed.wire.live import ForkSandbox
from hotbed.wire.routes import Route
from hotbed.wire.tunnels import TTL_LIMIT_S, check_protocol

USAGE_DAYS = 30
FORK_LIMIT = 64


async def create(node: Node, call: Call) -> dict[str, Any]:
    """Fork one."""
    request = collimate.create_request(call.body, template_field="template")
    request = own_template(node, call, request)
    return collimate.sandbox_created(await node.create_sandbox(request, own_lease(call)))


async def listing(node: Node, call: Call) -> dict[str, Any]:
    """The caller's."""
    return {"sandboxes": [collimate.sandbox_row(s.row()) for s in node.sessions if call.sees(s.held.lease)]}


async def get(node: Node, call: Call) -> dict[str, Any]:
    """One that lives."""
    return collimate.sandbox_row(find(node, call).row())


async def run_in_sandbox(node: Node, call: Call) -> dict[str, Any]:
    """One exec."""
    session = find(node, call)
    request = collimate.exec_request(call.body)
    return collimate.exec_answer(await run_exec(node, session.id, request), timeout_s=request.timeout_seconds)


async def delete(node: Node, call: Call) -> dict[str, Any]:
    """Kill one; what is left of it is cleared up behind the answer. An id that ended already is deleted."""
    try:
        await node.sessions.get(session_id(call, SANDBOX), call.sight).held.kill("deleted")
    except SandboxGone:
        pass
    return {"deleted": True, "id": call.segment("id")}


async def fork(node: Node, call: Call) -> dict[str, Any]:
    """Into `count` children, or none."""
    session = find(node, call)
    body = call.body
    count, labels = body.get("count", 1), body.get("labels")
    most = call.tenant.tier.fork if call.tenant is not None else FORK_LIMIT
    require(isinstance(count, int) and not isinstance(count, bool) and count >= 1, "count must be at least 1")
    assert isinstance(count, int)
    require(count <= most, f"count is {count}, and at most {most} children may be forked at once")
    require(labels is None or (isinstance(labels, list) and len(labels) == count), "labels must have one per child")
    texts = tuple(str(label) for label in labels) if labels is not None else None
    made = await live.fork(node, session, ForkSandbox(count=count, labels=texts))
    return collimate.sandbox_forked(made)


async def suspend(node: Node, call: Call) -> dict[str, Any]:
    """Hold it still."""
    return collimate.sandbox_state(await live.suspend(node, find(node, call)))


async def resume(node: Node, call: Call) -> dict[str, Any]:
    """Let it go on."""
    return collimate.sandbox_state(await live.resume(node, find(node, call)))


async def connect_url(node: Node, call: Call) -> dict[str, Any]:
    """An address that opens one port for a while. Every port is exposed to who owns the sandbox."""
    session, body = find(node, call), call.body
    port, ttl_s = body.get("port"), body.get("ttl_seconds", 600)
    require(type(port) is int and 1 <= port <= 65535, f"port must be 1 to 65535, not {port!r}")
    protocol = body.get("protocol", "tcp")
    check_protocol(protocol)
    ttl_s = min(max(float(ttl_s), 1.0), TTL_LIMIT_S) if isinstance(ttl_s, (int, float)) else 600.0
    made = mint(node, call, session, call.segment("id"), port=port, ttl_s=ttl_s, protocol=protocol)
    return {"url": made.url, "expires_at": made.expires_at}


async def usage(node: Node, call: Call) -> dict[str, Any]:
    """What the caller used in a span of time, from the ledger."""
    until = _moment(call, "to") or datetime.now(timezone.utc)
    since = _moment(call, "from") or until - timedelta(days=USAGE_DAYS)
    require(since <= until, "from is after to")
    tenant = call.tenant.id if call.tenant is not None else ""
    node.housekeeping.keep_usage()
    asked = partial(totals, since=since.timestamp(), until=until.timestamp(), tenant=tenant)
    found = await asyncio.to_thread(replays.ledger_of(node).read, asked)
    used = {name: value for name, value in (found[0] if found else {}).items() if name != "tenant"}
    return {"from": since.isoformat(), "to": until.isoformat(), "totals": used or NOTHING}


def find(node: Node, call: Call) -> Session:
    """The sandbox that a path names. Raises `NotFound`, also for one that has ended: it is no longer in the list."""
    try:
        return node.sessions.get(session_id(call, SANDBOX), call.sight)
    except (NotFound, SandboxGone):
        raise NotFound(f"no sandbox {call.segment('id')[:80]!r}") from None


def _moment(call: Call, name: str) -> datetime | None:
    text = call.request.query_params.get(name)
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise InvalidRequest(f"{name} must be an RFC 3339 time, not {text[:40]!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


HANDLERS: tuple[tuple[Route, Handler, bool], ...] = (
    (route("POST", "/v1/sandboxes", 201), create, False),
    (route("GET", "/v1/sandboxes"), listing, False),
    (route("GET", "/v1/sandboxes/{id}"), get, False),
    (route("DELETE", "/v1/sandboxes/{id}"), delete, False),
    (route("POST", "/v1/sandboxes/{id}/exec"), run_in_sandbox, True),
    (route("POST", "/v1/sandboxes/{id}/fork"), fork, False),
    (route("POST", "/v1/sandboxes/{id}/suspend"), suspend, False),
    (route("POST", "/v1/sandboxes/{id}/resume"), resume, False),
    (route("POST", "/v1/sandboxes/{id}/connect-url"), connect_url, False),
    (route("GET", "/v1/usage"), usage, False),
)
