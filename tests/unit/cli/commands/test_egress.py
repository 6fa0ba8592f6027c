"""`hotbed egress`; that attempts get there is in tests/e2e/test_egress.py."""

from __future__ import annotations

from hotbed.cli.commands.egress import cells
from hotbed.wire.egress import EgressRow


def test_a_line_says_who_went_where_and_why_not() -> None:
    """In a table's cells."""
    row = EgressRow(
        seq=1, at="2026-01-02T03:04:05.678Z", kind="http", method="GET", verdict="denied", name="a.org", port=80,
        reason="denied by a.org", leak=True, rollout_id="rollout_1",
    )  # fmt: skip

    assert cells(row) == (
        "2026-01-02 03:04:05", "denied", "http GET", "a.org", 80, 1, 0, 0, "yes", "denied by a.org", "rollout_1",
    )  # fmt: skip
