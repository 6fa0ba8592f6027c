"""Which requests are lines of the audit log: templates made and removed, and things ended, by who may do so to others.

That is an admin's key, and the node's own user through the Unix socket when what he ends is a tenant's. What a tenant
does with its own things is in the ledger.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hotbed.errors import Error
from hotbed.node.keys.audit import Action, AuditLog, local_user
from hotbed.node.leases import tenant_id
from hotbed.node.node import Node
from hotbed.server.operation import Call, Handler
from hotbed.wire import routes
from hotbed.wire.routes import Route

log = logging.getLogger(__name__)

ACTIONS: Mapping[str, str] = {
    routes.CREATE_TEMPLATE.name: "template.create",
    routes.DELETE_SANDBOX.name: "sandbox.delete",
    routes.DELETE_POOL.name: "pool.delete",
    routes.DELETE_SNAPSHOT.name: "snapshot.delete",
    "POST /v1/templates": "template.create",
    "DELETE /v1/templates/{id}": "template.delete",
    "DELETE /v1/sandboxes/{id}": "sandbox.delete",
}


def audited(route: Route, handler: Handler) -> Handler:
    """A route's handler that writes its line once it is done; on disk when the client is answered."""
    if route.name not in ACTIONS:
        return handler

    async def handled(node: Node, call: Call) -> Any:
        action = action_of(node, route, call)
        answer = await handler(node, call)
        if action is not None and node.audit is not None:
            await asyncio.to_thread(write, node.audit, action)
        return answer

    return handled


def write(audit: AuditLog, action: Action) -> None:
    """Write a line; in the node's own log where the audit log cannot be written, for the thing is done."""
    try:
        audit.note(action)
    except Error as error:
        log.error("event=audit_unwritten line=%r error=%r", asdict(action), error.message)


def action_of(node: Node, route: Route, call: Call) -> Action | None:
    """The line that a request will be once it is done; None when it is none. Ask before it is done."""
    action = ACTIONS.get(route.name)
    if action is None or node.audit is None:
        return None
    target = next(iter(call.request.path_params.values()), None) or named(call.body)
    owner = owner_of(node, action, str(target))
    if call.caller is None:
        if action != "template.create" and not owner:
            return None
        actor = local_user()
    elif "admin" in call.caller.scopes:
        actor = f"key {call.caller.key_id} of {call.caller.tenant.id}"
    else:
        return None
    return Action(actor=actor, action=action, target=str(target), details={"tenant": owner} if owner else {})


def named(body: object) -> str:
    """The name in a body of either wire."""
    return str(body.get("name", "")) if isinstance(body, dict) else str(getattr(body, "name", ""))


def owner_of(node: Node, action: str, target: str) -> str:
    """The tenant of what is to be ended; nothing for what is nobody's or is not there."""
    try:
        if action == "sandbox.delete":
            return tenant_id(node.sessions.get(target.removeprefix("sbx_")).held.lease)
        if action == "pool.delete":
            return tenant_id(node.pools.get(target).lease)
        if action == "snapshot.delete":
            return tenant_id(node.snapshots.get(target).lease)
    except Error:
        pass
    return ""
