"""What tenants used, and what admins did."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from functools import partial

from hotbed.errors import InvalidRequest, NotSupported
from hotbed.node import replays
from hotbed.node.ledger.usage import totals
from hotbed.node.node import Node
from hotbed.server.operation import Call
from hotbed.wire.checks import require
from hotbed.wire.usage import AuditPage, AuditRow, TenantUsage, UsageReport

SPAN_DAYS = 30
PAGE, PAGE_LIMIT = 100, 1000


async def usage(node: Node, call: Call) -> UsageReport:
    """The caller's, or everybody's for the node's own user and for admins."""
    until = moment_of(call, "until") or datetime.now(timezone.utc)
    since = moment_of(call, "since") or until - timedelta(days=SPAN_DAYS)
    require(since <= until, "since is after until")
    tenant = call.sight.id if call.sight is not None else None
    node.housekeeping.keep_usage()
    asked = partial(totals, since=since.timestamp(), until=until.timestamp(), tenant=tenant)
    rows = await asyncio.to_thread(replays.ledger_of(node).read, asked)
    return UsageReport(since=text_of(since), until=text_of(until), tenants=tuple(TenantUsage(**row) for row in rows))


async def audit(node: Node, call: Call) -> AuditPage:
    """A page of what admins did."""
    if node.audit is None:
        raise NotSupported("this node keeps no audit log", hint="`hotbed serve` does")
    limit = min(number_of(call, "limit") or PAGE, PAGE_LIMIT)
    rows = await asyncio.to_thread(node.audit.page, limit=limit, before=number_of(call, "before"))
    lines = tuple(AuditRow(**{**row, "at": text_of(datetime.fromtimestamp(row["at"], timezone.utc))}) for row in rows)
    return AuditPage(actions=lines, next=lines[-1].seq if len(lines) == limit else None)


def moment_of(call: Call, name: str) -> datetime | None:
    """A time of the query."""
    text = call.request.query_params.get(name)
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
        found = found if found.tzinfo else found.replace(tzinfo=timezone.utc)
        found.timestamp()
        return found
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{name} must be an RFC 3339 time, not {text[:40]!r}") from None


def number_of(call: Call, name: str) -> int | None:
    """A number of the query."""
    text = call.request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InvalidRequest(f"{name} must be a whole number, not {text[:32]!r}")
    return int(text)


def text_of(moment: datetime) -> str:
    """RFC 3339 in UTC."""
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
