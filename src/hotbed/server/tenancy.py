"""What the handlers of the published wires ask of a caller, whose requests `admission` does not rewrite for them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TypeVar

from hotbed.errors import SandboxGone, UnknownTemplate
from hotbed.node.leases import Lease
from hotbed.node.node import Node
from hotbed.node.tenants import Tenant
from hotbed.server.operation import Call
from hotbed.wire.execs import RolloutRequest
from hotbed.wire.routes import Route
from hotbed.wire.sandboxes import CreateSandbox

Request = TypeVar("Request", CreateSandbox, RolloutRequest)


async def admit_published(node: Node, route: Route, call: Call) -> Call:
    """A published client's request: its scope and its lease. The rest, its handler asks below."""
    assert call.caller is not None, "requests without a key are not admitted, they are served"
    call.caller.check_scope("read" if route.method == "GET" else "run")
    if call.lease is not None and call.lease.tenant is not call.tenant:
        raise SandboxGone("that lease is not held here", hint="its connection ended, or the node restarted")
    return call


def own_lease(call: Call) -> Lease | None:
    """What to make things under: a client without a lease makes them under its tenant's lasting one."""
    if call.lease is None and call.tenant is not None:
        return call.tenant.lease
    return call.lease


def own_template(node: Node, call: Call, request: Request) -> Request:
    """The request with the node's name of the template, and limits under the tier's."""
    if call.tenant is None:
        return request
    template, limits = known_template(node, call.tenant, request.template)
    return replace(request, template=template, limits=call.tenant.capped(request.limits, limits))


def known_template(node: Node, tenant: Tenant, name: str) -> tuple[str, dict[str, float]]:
    """The node's name of a template, and its limits. Raises `UnknownTemplate`, by the name that was asked for."""
    full = tenant.template_name(name, node.templates.public)
    try:
        return full, asdict(node.templates.spec(full).limits)
    except UnknownTemplate as error:
        raise UnknownTemplate(error.message.replace(repr(full[:64]), repr(name[:64])), hint=error.hint) from None
