"""What sandboxes are forked from."""

from __future__ import annotations

from hotbed.dashboard.look import Look, Page
from hotbed.node.tenants import TEMPLATE_MARK


async def show(look: Look) -> Page:
    """The page. A tenant sees the catalog and its own."""
    tenant = look.viewer.tenant
    rows = [
        row
        for row in look.node.templates.rows()
        if tenant is None or row.visibility == "public" or row.name.startswith(f"{tenant}{TEMPLATE_MARK}")
    ]
    return Page(template="templates.html", title="Templates", values={"rows": rows})
