"""Groups of siblings, and how their rewards are spread."""

from __future__ import annotations

from hotbed.dashboard import charts
from hotbed.dashboard.look import Look, Page
from hotbed.errors import NotFound
from hotbed.node.ledger import groups as ledger

PAGE = 30
MEMBERS = 200


async def listing(look: Look) -> Page:
    """The newest, a page at a time."""
    before = look.number("before")
    page = await look.read(lambda store: ledger.page(store, limit=PAGE, before=before, tenant=look.viewer.tenant))
    values = {
        "groups": [
            (group, charts.histogram(group.rewards, width=120, height=24), charts.spread(group.rewards))
            for group in (page.groups if page is not None else ())
        ],
        "next": page.next if page is not None else None,
        "first": before is None,
        "ledger": page is not None,
    }
    return Page(template="groups.html", title="Groups", values=values)


async def show(look: Look) -> Page:
    """One group and its members."""
    group_id = look.segment("id")
    tenant = look.viewer.tenant
    where = {"group_id": group_id, **({} if tenant is None else {"tenant": tenant})}
    found = await look.read(
        lambda store: (ledger.summary(store, group_id, tenant=tenant), store.find(limit=MEMBERS, where=where))
    )
    group, rows = found or (None, [])
    if group is None:
        raise NotFound(f"the ledger holds no group {group_id[:80]!r}", hint="retention may have removed it")
    values = {
        "group": group,
        "rows": rows,
        "bars": charts.histogram(group.rewards, width=600, height=140),
        "spread": charts.spread(group.rewards),
        "shown": len(rows),
    }
    return Page(template="group.html", title="Group", values=values)
