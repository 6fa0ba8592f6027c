"""Templates."""

from __future__ import annotations

from dataclasses import replace

from hotbed.errors import Forbidden, TemplateInUse
from hotbed.node.bakes.recipe import recipe_of
from hotbed.node.node import Node
from hotbed.node.templates import limits_of
from hotbed.runtime.base import Limits
from hotbed.runtime.images import names, sources
from hotbed.server.operation import Call
from hotbed.wire.templates import (
    CreateTemplate,
    ImageList,
    ImageRow,
    TemplateDeleted,
    TemplateList,
    TemplateRow,
)


async def create(node: Node, call: Call) -> TemplateRow:
    """Register one and warm it, or begin to bake it."""
    node.check_open()
    return await make(node, call, call.body)


async def make(node: Node, call: Call, request: CreateTemplate) -> TemplateRow:
    """The same from either wire. What only needs this host's interpreter is warm at once; the rest is baked."""
    if request.image in node.templates.public:
        request = replace(request, image=f"template:{request.image}")
    if not request.is_baked:
        return await node.templates.create(request)
    node.egress.policy(request.egress, request.name, call.lease)  # refused now, or the bake may use it
    recipe = recipe_of(_resolved(node, call, request), limits_of(Limits(), request.limits), stranger=_is_stranger(call))
    node.bakes.start(recipe, width=_declared(node, call, request.width))
    return node.bakes.row(request.name)


def _is_stranger(call: Call) -> bool:
    """Whether it is not this machine's own user who asks."""
    return call.tenant is not None


def _declared(node: Node, call: Call, width: int) -> int:
    """As many as can be: no more than the tenant's tier, or the node, ever has at once."""
    most = node.policy.max_sandboxes
    return min(width, most if call.tenant is None else min(most, call.tenant.tier.sandboxes))


def _resolved(node: Node, call: Call, request: CreateTemplate) -> CreateTemplate:
    """With the node's own name of a template that it starts from, and a registry that the caller may use."""
    source = sources.parse(request.image)
    if source.kind == "template":
        name = source.place
        if call.tenant is not None:
            name = call.tenant.template_name(name, node.templates.public)
        node.templates.spec(name)
        return replace(request, image=f"template:{name}")
    if source.kind == "registry" and _is_stranger(call) and names.host_of(source.place) not in node.policy.registries:
        raise Forbidden(
            f"this server fetches no images from {names.host_of(source.place)}",
            hint=f"it fetches from {', '.join(node.policy.registries)}; its operator sets `registries`",
        )
    return request


async def listing(node: Node, call: Call) -> TemplateList:
    """All of them, also those still in the oven."""
    return TemplateList(templates=tuple(rows(node, call)))


def rows(node: Node, call: Call) -> list[TemplateRow]:
    """Every template that the caller can use, or has asked for."""
    names = dict.fromkeys((*node.templates.names, *node.bakes.names()))
    return [node.bakes.row(name) for name in names if is_seen(node, call, name)]


async def get(node: Node, call: Call) -> TemplateRow:
    """One of them."""
    return node.bakes.row(_named(node, call))


async def delete(node: Node, call: Call) -> TemplateDeleted:
    """Forget one, or give up its bake. Raises `TemplateInUse` while sandboxes of it live."""
    name = _named(node, call)
    if name in node.templates.built_in or (call.tenant is not None and name in node.templates.public):
        raise of_everybody(name)
    await remove(node, name)
    return TemplateDeleted(id=name)


async def expect(node: Node, call: Call) -> TemplateRow:
    """Have as many parked as will be wanted, or as few as that none will be."""
    node.check_open()
    name = _named(node, call)
    if call.tenant is not None and name in node.templates.public:
        raise of_everybody(name)
    node.templates.spec(name)
    await node.templates.expect(name, _declared(node, call, call.body.width))
    return node.bakes.row(name)


def of_everybody(name: str) -> Forbidden:
    """The refusal to change a template of the catalog."""
    return Forbidden(f"template {name} is of the shared catalog: it is always warm and nobody's to change")


async def remove(node: Node, name: str) -> None:
    """The same from either wire."""
    alive = sum(session.template.spec.name == name for session in node.sessions)
    if alive:
        raise TemplateInUse(f"{alive} sandboxes of {name} live", hint="delete them first")
    await node.bakes.remove(name)


def _named(node: Node, call: Call) -> str:
    name = call.segment("name")
    if call.sight is None and name in node.templates.names:
        return name  # an admin may mean anybody's
    return name if call.tenant is None else call.tenant.template_name(name, node.templates.public)


async def images(node: Node, call: Call) -> ImageList:
    """What a template can be made from: the catalog, and what is unpacked here, for this machine's own user."""
    found = [
        ImageRow(id=name, name=name, image=f"template:{name}", description=node.templates.describe(name))
        for name in sorted(node.templates.public)
    ]
    if not _is_stranger(call):
        found += [
            ImageRow(
                id=record.digest, name=record.source, image=record.source, visibility="private", size_bytes=record.size
            )
            for record in await node.bakes.images()
        ]
    return ImageList(images=tuple(found))


def is_seen(node: Node, call: Call, name: str) -> bool:
    """Whether a template is everybody's, or the caller's."""
    sight = call.sight
    return sight is None or name in node.templates.built_in or sight.owns_template(name)
