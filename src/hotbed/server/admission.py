"""What stands between a tenant's request and its handler: scopes, whose things are named, and the tier's limits.

It runs for requests that came with a key and for no others. A request comes out of it rewritten into one that any
handler may serve: under a lease of the tenant's, with the node's names of its templates, and with no limit above its
tier's. What names somebody else's thing is answered exactly as if it named nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from hotbed.errors import PoolClosed, QuotaExceeded, SandboxGone, TierLimit, UnknownRollout
from hotbed.node import replays
from hotbed.node.node import Node
from hotbed.node.tenants import Caller, Tenant
from hotbed.server.operation import Call
from hotbed.server.tenancy import known_template
from hotbed.wire import routes
from hotbed.wire.routes import Route

_SCOPES: Mapping[str, tuple[str, ...]] = {
    routes.GRADE.name: ("grade",),
    routes.HOLD_LEASE.name: ("run", "grade", "read"),
    routes.RELEASE_LEASE.name: ("run", "grade", "read"),
    routes.STATS.name: ("metrics",),
    routes.METRICS.name: ("metrics",),
    routes.AUDIT.name: ("admin",),
    routes.CAPABILITIES.name: ("run", "grade", "read"),
    routes.HEALTH.name: ("run", "grade", "read"),
    routes.OPENAPI.name: ("run", "grade", "read"),
}


async def admit(node: Node, route: Route, call: Call) -> Call:
    """The request as it may be served. Raises `Forbidden`, `NotFound`, `QuotaExceeded`."""
    caller = call.caller
    assert caller is not None, "requests without a key are not admitted, they are served"
    caller.check_scope(*scopes_of(route))
    if call.lease is not None and call.lease.tenant is not caller.tenant:
        raise SandboxGone("that lease is not held here", hint="its connection ended, or the node restarted")
    await check_named(node, route, call)
    call.body = rewritten(node, route, call.body, caller)
    if call.lease is None and route is not routes.HOLD_LEASE:
        call.lease = caller.tenant.lease
    return call


def scopes_of(route: Route) -> tuple[str, ...]:
    """The scopes of which one is needed."""
    return _SCOPES.get(route.name) or (("read",) if route.method in ("GET", "HEAD") else ("run",))


async def check_named(node: Node, route: Route, call: Call) -> None:
    """Raise `NotFound` when the path names something of somebody else's."""
    named = call.request.path_params
    _, _, top, *_ = (*route.path.split("/"), "")
    if top in ("sandboxes", "pools") and "id" in named:
        try:
            (node.sessions if top == "sandboxes" else node.pools).get(named["id"], call.sight)
        except (SandboxGone, PoolClosed):  # the tenant's own
            if route not in (routes.DELETE_SANDBOX, routes.DELETE_POOL):  # where ending it again is no error
                raise
    elif top == "snapshots" and "id" in named:
        node.snapshots.check_owner(named["id"], call.sight)
    elif top == "rollouts" and "id" in named and call.sight is not None:
        await _check_rollout(node, named["id"], call.sight)


async def _check_rollout(node: Node, rollout_id: str, tenant: Tenant) -> None:
    ledger = replays.ledger_of(node)
    mine = {"tenant": tenant.id}
    found = await asyncio.to_thread(ledger.read, lambda store: store.find(limit=1, where={**mine, "id": rollout_id}))
    if not found:
        raise UnknownRollout(f"the ledger holds no rollout {rollout_id[:80]!r}", hint="give its whole id")


def rewritten(node: Node, route: Route, body: Any, caller: Caller) -> Any:
    """A request's body with the node's names of templates and limits under the tier's."""
    tenant = caller.tenant
    if route is routes.GRADE:
        return _grading(node, body, tenant)
    if route is routes.CREATE_TEMPLATE:
        return named_template(node, body, tenant)
    names = {item.name for item in fields(body)} if body is not None else set()
    if "template" not in names:
        return body
    template, limits = known_template(node, tenant, body.template)
    body = replace(body, template=template, limits=tenant.capped(body.limits, limits))
    if route is routes.CREATE_POOL:
        check_pool(node, body.n, tenant)
    return body


def _grading(node: Node, body: Any, tenant: Tenant) -> Any:
    template = body.spec.get("template")
    if not isinstance(template, str):
        return body
    return replace(body, spec={**body.spec, "template": tenant.template_name(template, node.templates.public)})


def named_template(node: Node, body: Any, tenant: Tenant) -> Any:
    """A template under the tenant's own name for it. Raises `TierLimit` before one is made."""
    name = tenant.template_name(body.name, frozenset())
    own = {known for known in (*node.templates.names, *node.bakes.names()) if tenant.owns_template(known)}
    if name not in own and len(own) >= tenant.tier.templates:
        tier = tenant.tier
        catalog = "use a template of the catalog"
        if not tier.templates:
            raise tenant.refusal("templates", "bakes no templates", instead=catalog)
        raise TierLimit(
            f"tenant {tenant.id} may keep {tier.templates} templates of its own in tier {tier.name}",
            hint=f"delete one, {catalog}, or ask the operator of this server for another tier",
        )
    base = {"cpus": 1.0, "memory_mib": 1024, "disk_mib": 512}
    return replace(body, name=name, limits=tenant.capped(body.limits, base))


def check_pool(node: Node, workers: int, tenant: Tenant) -> None:
    """Raise `QuotaExceeded` before the first of more workers than the tenant may have."""
    left = tenant.tier.sandboxes - node.admission.kept(tenant.id)
    if workers > left:
        raise QuotaExceeded(
            f"{workers} workers were asked for, and tenant {tenant.id} may have {max(0, left)} more sandboxes "
            f"(tier {tenant.tier.name}: {tenant.tier.sandboxes} at once)",
            hint="close what you no longer need, or ask the operator of this server for another tier",
            retry_after_s=1.0,
        )
