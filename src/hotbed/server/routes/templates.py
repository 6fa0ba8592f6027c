"""Templates."""

from __future__ import annotations

from hotbed.node.node import Node
from hotbed.server.operation import Call
from hotbed.wire.templates import TemplateList, TemplateRow


async def create(node: Node, call: Call) -> TemplateRow:
    """Register one and warm it."""
    node.check_open()
    return await node.templates.create(call.body)


async def listing(node: Node, call: Call) -> TemplateList:
    """All of them."""
    rows = node.templates.rows()
    return TemplateList(templates=tuple(row for row in rows if is_seen(node, call, row.name)))


async def get(node: Node, call: Call) -> TemplateRow:
    """One of them."""
    name = call.segment("name")
    if call.tenant is not None:
        name = call.tenant.template_name(name, node.templates.built_in)
    return node.templates.row(name)


def is_seen(node: Node, call: Call, name: str) -> bool:
    """Whether a template is everybody's, or the caller's."""
    return call.tenant is None or name in node.templates.built_in or call.tenant.owns_template(name)
