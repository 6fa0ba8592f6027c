"""Usage and audit on the wire."""

from __future__ import annotations

from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.usage import AuditPage, AuditRow, TenantUsage, UsageReport


def test_reports_survive_the_wire() -> None:
    """What a client does not know yet is ignored."""
    report = UsageReport(since="a", until="b", tenants=(TenantUsage(tenant="acme", cpu_s=1.5, bytes_out=1 << 40),))
    page = AuditPage(actions=(AuditRow(seq=1, at="t", actor="a", action="x", target="y", details={"n": 1}),), next=1)

    assert from_wire(UsageReport, {**to_wire(report), "more": 1}) == report
    assert from_wire(AuditPage, to_wire(page)) == page
