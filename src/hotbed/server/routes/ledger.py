"""What happened: the ledger's lines, and running them again."""

from __future__ import annotations

import asyncio

from hotbed.errors import InvalidRequest
from hotbed.node import records, replays
from hotbed.node.leases import Lease
from hotbed.node.node import Node
from hotbed.server.operation import Call
from hotbed.wire.ledger import GroupReplay, ReplayReport, RolloutDetail, RolloutList

PAGE = 50
PAGE_LIMIT = 1000
FILTERS = ("template", "status", "kind", "sandbox_id", "group_id", "label")


async def listing(node: Node, call: Call) -> RolloutList:
    """A page, newest first."""
    query = call.request.query_params
    unknown = sorted(set(query) - {*FILTERS, "limit", "before"})
    if unknown:
        raise InvalidRequest(f"rollouts cannot be asked for by {unknown[0][:64]!r}", hint=f"by {', '.join(FILTERS)}")
    limit = min(number_of(query.get("limit"), "limit") or PAGE, PAGE_LIMIT)
    before = number_of(query.get("before"), "before")
    where = {name: query[name] for name in FILTERS if name in query}
    if call.sight is not None:
        where["tenant"] = call.sight.id
    ledger = replays.ledger_of(node)
    rows = await asyncio.to_thread(ledger.read, lambda store: store.find(limit=limit, before=before, where=where))
    return RolloutList(
        rollouts=tuple(map(records.row_of, rows)),
        next=rows[-1]["seq"] if len(rows) == limit else None,
    )


async def show(node: Node, call: Call) -> RolloutDetail:
    """One line with its request and output."""
    rollout_id = call.segment("id")
    ledger = replays.ledger_of(node)
    return await asyncio.to_thread(ledger.read, lambda store: records.detail_of(store.get(rollout_id), store))


async def replay(node: Node, call: Call) -> ReplayReport:
    """Run one again."""
    return await replays.replay(node, call.segment("id"), _whose(call))


async def replay_group(node: Node, call: Call) -> GroupReplay:
    """Run a group again."""
    return await replays.replay_group(node, call.segment("id"), _whose(call))


def _whose(call: Call) -> Lease | None:
    """Under which lease to replay: for an admin nobody's, since its tenant's other keys must not read of it."""
    return None if call.caller is not None and call.sight is None else call.lease


def number_of(text: str | None, name: str) -> int | None:
    """A number in a query."""
    if text is None:
        return None
    if not text.isdigit() or len(text) > 18:
        raise InvalidRequest(f"{name} must be a whole number, not {text[:32]!r}")
    return int(text)
