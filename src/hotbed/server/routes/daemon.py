"""The published daemon's wire: sessions, and one-shot execs."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from hotbed.errors import NotFound, SandboxGone
from hotbed.node.execs import run_exec
from hotbed.node.node import Node
from hotbed.node.rollouts import run_rollout
from hotbed.node.sessions import Session
from hotbed.server.operation import Call, Handler
from hotbed.server.published import Refused, refusing, route, session_id
from hotbed.server.routes.node import health
from hotbed.server.tenancy import own_lease, own_template
from hotbed.wire import collimate
from hotbed.wire.collimate import SESSION
from hotbed.wire.routes import Route

refuse = refusing(collimate.DAEMON_CODES, SESSION)


async def listing(node: Node, call: Call) -> list[dict[str, Any]]:
    """A bare array, as the wire has it."""
    return [collimate.session_row(s.row()) for s in node.sessions if call.sees(s.held.lease)]


async def create(node: Node, call: Call) -> dict[str, Any]:
    """Fork one."""
    body = call.body
    require_template(body)
    request = own_template(node, call, collimate.create_request(body, template_field="template_id"))
    return collimate.session_created(await node.create_sandbox(request, own_lease(call)))


async def get(node: Node, call: Call) -> dict[str, Any]:
    """One that lives."""
    return collimate.session_row(find(node, call).row())


async def run_in_session(node: Node, call: Call) -> dict[str, Any]:
    """One exec. A session that ends under it answers `session_gone`."""
    session = find(node, call)
    request = collimate.exec_request(call.body)
    return collimate.exec_answer(await run_exec(node, session.id, request), timeout_s=request.timeout_seconds)


async def run_once(node: Node, call: Call) -> dict[str, Any]:
    """Fork, run once, discard."""
    body = call.body
    require_template(body)
    request = own_template(node, call, collimate.rollout_request(body))
    return collimate.exec_answer(await run_rollout(node, request, own_lease(call)), timeout_s=request.timeout_seconds)


async def delete(node: Node, call: Call) -> Any:
    """Kill one; what is left of it is cleared up behind the answer."""
    named = call.segment("id")
    try:
        await find(node, call).held.kill("deleted")
    except Refused as refused:
        body = json.dumps({"deleted": False, "session_id": named, **refused.body()})
        return Response(body, refused.status, media_type="application/json")
    return {"deleted": True, "session_id": named}


def find(node: Node, call: Call) -> Session:
    """The session that a path names, or the daemon's word for an id that ended or never was."""
    try:
        return node.sessions.get(session_id(call, SESSION), call.sight)
    except (NotFound, SandboxGone):
        raise Refused(404, "no_such_session", f"no such session: {call.segment('id')[:80]}") from None


def require_template(body: dict[str, Any]) -> None:
    """Refuse a body that names no template."""
    if not body.get("template_id"):
        raise Refused(400, "template_id_required", "template_id is required")


HANDLERS: tuple[tuple[Route, Handler, bool], ...] = (
    (route("GET", "/health"), health, False),
    (route("POST", "/v1/sessions", 201), create, False),
    (route("GET", "/v1/sessions"), listing, False),
    (route("GET", "/v1/sessions/{id}"), get, False),
    (route("DELETE", "/v1/sessions/{id}"), delete, False),
    (route("POST", "/v1/sessions/{id}/exec"), run_in_session, True),
    (route("POST", "/v1/exec"), run_once, True),
    (route("POST", "/exec"), run_once, True),
)
