"""Entries for the ledger's tests."""

from __future__ import annotations

from typing import Any

from hotbed.node.ledger.entry import Entry


def entry(number: int, **changes: Any) -> Entry:
    """The entry of a rollout that printed its number."""
    values: dict[str, Any] = {
        "id": f"rollout_{number:06d}",
        "kind": "rollout",
        "at": 1000.0 + number,
        "template": "python",
        "template_digest": "d" * 64,
        "request": b'{"code":"print(1)"}',
        "seed": "ab" * 32,
        "stdout": b"%d\n" % number,
        "stdout_total": len(b"%d\n" % number),
        "exit_code": 0,
    }
    return Entry(**{**values, **changes})
