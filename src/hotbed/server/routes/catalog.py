"""The published gateway's wire: images and templates.

The catalog is the node's built-in templates. A tenant bakes its own from a row of it, or from an image: it goes on by
itself, and `get` tells its phase. `warm` and `frozen` are sandboxes that are parked; `declared` is how many the node
keeps for what was asked, under the tier's limit, and 0 of what nobody wants now: it is forked when somebody does.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from hotbed.errors import InvalidRequest, NotFound
from hotbed.node.node import Node
from hotbed.node.templates import Templates
from hotbed.node.tenants import TEMPLATE_MARK
from hotbed.server.admission import named_template
from hotbed.server.operation import Call, Handler
from hotbed.server.published import Refused, route
from hotbed.server.routes.templates import make, of_everybody, remove, rows
from hotbed.wire.checks import require
from hotbed.wire.routes import Route
from hotbed.wire.templates import CreateTemplate, Ready, TemplateRow

READY_TIMEOUT_S = 300.0


async def images(node: Node, call: Call) -> dict[str, Any]:
    """The catalog, and the caller's own."""
    return {"images": [_image(row) for row in rows(node, call)]}


async def listing(node: Node, call: Call) -> dict[str, Any]:
    """Everybody's, and the caller's own."""
    return {"templates": [_status(node, call, row) for row in rows(node, call)]}


async def get(node: Node, call: Call) -> dict[str, Any]:
    """One, and how far it is."""
    return _status(node, call, find(node, call))


async def create(node: Node, call: Call) -> dict[str, Any]:
    """Bake one. The same name and content again is the same template."""
    body = call.body
    width = _width(call, body.get("expected_width") or _pool(body).get("width") or 1)
    request = _baking(body, width)
    if call.tenant is not None:
        request = named_template(node, request, call.tenant)
        if _ready(body).get("network") and not call.tenant.tier.network:
            lacking = call.tenant.refusal("network", "gives no sandbox a network")
            raise Refused(403, "network_requires_pro", lacking.message)
    node.check_open()
    row = await make(node, call, request)
    node.templates.widths[row.name] = width
    return {**_status(node, call, row), "bake_mode": "built"}


async def delete(node: Node, call: Call) -> dict[str, Any]:
    """Forget one of the caller's own, or give up its bake."""
    row = _own(node, call)
    await remove(node, row.name)
    return {"deleted": True, "id": row.id}


async def expect(node: Node, call: Call) -> dict[str, Any]:
    """Take note of how many are wanted, under the tier's limit."""
    row = _own(node, call)
    width = call.body.get("width")
    await node.templates.expect(row.name, _width(call, width))
    return {"id": row.id, "expected_width": node.templates.widths[row.name]}


async def release(node: Node, call: Call) -> dict[str, Any]:
    """Forget how many are wanted. What lives is left alone."""
    row = _own(node, call)
    await node.templates.expect(row.name, 0)
    return {"id": row.id, "released": True, "released_at": datetime.now(timezone.utc).isoformat(timespec="seconds")}


def find(node: Node, call: Call) -> TemplateRow:
    """The template that a path names. Raises `NotFound`, also for somebody else's."""
    name = call.segment("id")
    if call.tenant is not None:
        name = call.tenant.template_name(name, node.templates.public)
    if name not in node.templates.names and node.bakes.find(name) is None:
        raise NotFound(f"no template {call.segment('id')[:80]!r}")
    return node.bakes.row(name)


def _own(node: Node, call: Call) -> TemplateRow:
    row = find(node, call)
    if row.name in node.templates.public:
        raise of_everybody(row.name)
    return row


def _check_ports(ports: object) -> None:
    """Ports to expose need nothing done: every port of a sandbox can be opened by who owns it."""
    good = ports is None or (isinstance(ports, list) and all(type(port) is int and 0 < port < 65536 for port in ports))
    require(good, f"ready.ports must be a list of ports, not {str(ports)[:80]}")


def _baking(body: dict[str, Any], width: int) -> CreateTemplate:
    """What a bake makes. Raises `InvalidRequest`."""
    name, image, ready = body.get("name"), body.get("image"), _ready(body)
    require(isinstance(name, str) and name != "", "name is required")
    require(isinstance(image, str) and image != "", "image is required")
    _check_ports(ready.get("ports"))
    env = ready.get("env") or {}
    require(isinstance(env, dict), "ready.env must be an object of strings")
    variables = {str(key): str(value) for key, value in sorted(env.items())}
    conditions = Ready(
        cmd=str(ready.get("cmd") or ""),
        http=str(ready.get("http") or ""),
        network=bool(ready.get("network")),
        timeout_s=float(ready.get("http_timeout_s") or READY_TIMEOUT_S),
    )
    wanted = None if conditions == Ready(timeout_s=conditions.timeout_s) else conditions
    return CreateTemplate(name=str(name), image=str(image), env=variables, ready=wanted, width=width)


def _ready(body: dict[str, Any]) -> dict[str, Any]:
    ready = body.get("ready") or {}
    require(isinstance(ready, dict), "ready must be an object")
    return dict(ready)


def _pool(body: dict[str, Any]) -> dict[str, Any]:
    pool = body.get("pool") or {}
    require(isinstance(pool, dict), "pool must be an object")
    return dict(pool)


def _width(call: Call, width: object) -> int:
    if not isinstance(width, int) or isinstance(width, bool) or width < 1:
        raise InvalidRequest(f"width must be at least 1, not {width!r}")
    return min(width, call.tenant.tier.sandboxes) if call.tenant is not None else width


def short_name(row: TemplateRow) -> str:
    """What its maker called it."""
    return row.name.partition(TEMPLATE_MARK)[2] or row.name


def _image(row: TemplateRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": short_name(row),
        "image": row.id if row.visibility == "public" else row.image,
        "visibility": row.visibility,
        "tier": "demo",
        "description": Templates.describe(row.name),
    }


def _status(node: Node, call: Call, row: TemplateRow) -> dict[str, Any]:
    """A template as the wire tells of it. A built-in one that nobody used yet is warmed by its first fork."""
    public = row.visibility == "public"
    ready = public or row.phase == "Live"
    width = min(node.templates.widths.get(row.name, row.declared), node.policy.max_sandboxes)
    declared = node.templates.declared(row.name, width)
    warm = row.warm if node.templates.warmth(row.name) is not None else declared
    frozen = row.frozen
    return {
        **{key: value for key, value in asdict(row).items() if key in ("id", "visibility", "error", "digest")},
        "name": short_name(row),
        "image": row.id if public else row.image,
        "phase": "Live" if ready else row.phase,
        "tier": "demo",
        "description": Templates.describe(row.name),
        "declared": declared,
        "warm": warm if ready else 0,
        "frozen": frozen,
        "per_node": [{"node": node.id, "warm": warm if ready else 0, "frozen": frozen}],
        "converge_state": "converged" if ready and warm + frozen >= declared else "converging",
        "bake_mode": "inherited_artifact" if public else "built",
        "build_fails": row.build_fails,
        "live_state": row.live_state,
    }


HANDLERS: tuple[tuple[Route, Handler, bool], ...] = (
    (route("GET", "/v1/images"), images, False),
    (route("GET", "/v1/templates"), listing, False),
    (route("POST", "/v1/templates", 201), create, False),
    (route("GET", "/v1/templates/{id}"), get, False),
    (route("DELETE", "/v1/templates/{id}"), delete, False),
    (route("POST", "/v1/templates/{id}/expect"), expect, False),
    (route("POST", "/v1/templates/{id}/release"), release, False),
)
