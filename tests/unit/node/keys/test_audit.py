"""The audit log."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.keys.audit import Action, AuditLog, local_user
from hotbed.node.keys.key import Key, new_secret
from hotbed.node.keys.store import KeyStore


def key(tier: str = "pro") -> Key:
    """A new one."""
    return Key(tenant="acme", tier=tier, scopes=frozenset(("run",)), label="ci")


def test_a_key_made_or_revoked_leaves_a_line(tmp_path: Path) -> None:
    """Once for each change, without what would let somebody in."""
    store, log, made = KeyStore(tmp_path), AuditLog(tmp_path), key()
    secret = new_secret()
    store.add(made, secret)
    store.revoke(made.id)
    store.revoke(made.id)

    lines = log.page(limit=10)
    assert [(line["action"], line["target"], line["actor"]) for line in lines] == [
        ("key.revoke", made.id, local_user()),
        ("key.create", made.id, local_user()),
    ]
    assert lines[1]["details"] == {"tenant": "acme", "tier": "pro", "scopes": "run", "label": "ci"}
    assert secret not in str(lines)
    store.close()
    log.close()


def test_a_key_that_was_refused_leaves_none(tmp_path: Path) -> None:
    """The log says what was done."""
    store, log = KeyStore(tmp_path), AuditLog(tmp_path)
    store.add(key(), new_secret())
    with pytest.raises(InvalidRequest):
        store.add(key("ent"), new_secret())

    assert len(log.page(limit=10)) == 1
    store.close()
    log.close()


def test_pages_go_back_in_time(tmp_path: Path) -> None:
    """Newest first."""
    log = AuditLog(tmp_path)
    for number in range(5):
        log.note(Action(actor="a", action="x", target=str(number), details={}))
    first = log.page(limit=2)

    assert [line["target"] for line in first] == ["4", "3"]
    assert [line["target"] for line in log.page(limit=9, before=first[-1]["seq"])] == ["2", "1", "0"]
    log.close()
