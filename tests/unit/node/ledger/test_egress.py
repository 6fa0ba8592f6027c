"""The table of attempts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotbed.node.ledger.entry import Entry
from hotbed.node.ledger.store import Store


def entry(number: int, *, verdict: str = "denied", at: float = 100.0) -> Entry:
    """Decisions of one moment."""
    row: dict[str, Any] = {
        "kind": "dns", "name": "a.org", "address": "", "port": 0, "method": "", "verdict": verdict, "reason": "no",
        "at": at, "count": 2, "up": 3, "down": 5, "leak": True,
    }  # fmt: skip
    details = {"rollout_id": f"rollout_{number}", "rows": [row]}
    return Entry(
        id=f"egress_{number}", kind="egress", at=at, template="python", template_digest="", request=b"",
        tenant="t", details=details,
    )  # fmt: skip


def test_rows_are_found_by_whose_they_are(tmp_path: Path) -> None:
    """Newest first, and no rollout is made of them."""
    store = Store(tmp_path / "ledger.db")
    store.add([entry(1), entry(2, verdict="allowed"), entry(1)])

    assert [row["rollout_id"] for row in store.attempts(limit=9, before=None, where={})] == ["rollout_2", "rollout_1"]
    (row,) = store.attempts(limit=9, before=None, where={"verdict": "denied", "tenant": "t"})
    assert (row["count"], row["bytes_up"], row["bytes_down"], row["leak"]) == (2, 3, 5, 1)
    assert store.count() == 0
    store.close()


def test_old_rows_go(tmp_path: Path) -> None:
    """With the rollouts of their time."""
    store = Store(tmp_path / "ledger.db")
    store.add([entry(1, at=100.0), entry(2, at=300.0)])

    store.retain(newer_than=200.0, max_bytes=1 << 40)

    assert [row["rollout_id"] for row in store.attempts(limit=9, before=None, where={})] == ["rollout_2"]
    store.close()
