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
    return TemplateList(templates=node.templates.rows())


async def get(node: Node, call: Call) -> TemplateRow:
    """One of them."""
    return node.templates.row(call.segment("name"))
