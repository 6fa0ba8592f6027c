"""Calls for operators: what tenants used, and what admins did."""

from __future__ import annotations

from urllib.parse import urlencode

from hotbed.sdk.bodies import read_json
from hotbed.sdk.calls import Call
from hotbed.wire import routes
from hotbed.wire.codec import from_wire
from hotbed.wire.usage import AuditPage, UsageReport


def usage(*, since: str | None = None, until: str | None = None) -> Call[UsageReport]:
    """What tenants used."""
    query = {name: value for name, value in (("since", since), ("until", until)) if value is not None}
    target = f"{routes.USAGE.path}?{urlencode(query)}" if query else routes.USAGE.path
    return Call(method="GET", target=target, read=lambda body: from_wire(UsageReport, read_json(body)))


def audit(*, limit: int, before: int | None = None) -> Call[AuditPage]:
    """What admins did."""
    query = {"limit": limit, **({} if before is None else {"before": before})}
    target = f"{routes.AUDIT.path}?{urlencode(query)}"
    return Call(method="GET", target=target, read=lambda body: from_wire(AuditPage, read_json(body)))
