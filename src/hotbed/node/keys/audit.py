"""The audit log: who did what with rights that not everybody has. Lines are added, and never changed.

It is beside the keys, and a change of a key and its line are one transaction. Other lines are written once the thing is
done.
"""

from __future__ import annotations

import json
import os
import pwd
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotbed.node.state.database import Database, open_database, place_of

_INSERT = "INSERT INTO audit (at, actor, action, target, details) VALUES (?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that somebody did."""

    actor: str
    action: str
    target: str
    details: dict[str, Any]


class AuditLog:
    """The log of one node. Any thread may use it."""

    def __init__(self, home: Path, dsn: str = "") -> None:
        self._db = open_database(place_of(home, "keys", dsn), str(__package__))
        self._lock = threading.Lock()

    def note(self, action: Action) -> None:
        """Add a line. Blocks."""
        with self._lock:
            add(self._db, action)

    def page(self, *, limit: int, before: int | None = None) -> list[dict[str, Any]]:
        """Lines, newest first. Blocks."""
        sql = "SELECT * FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT ?"
        with self._lock:
            rows = self._db.rows(sql, (2**62 if before is None else before, limit))
        return [{**row, "details": json.loads(row["details"])} for row in rows]

    def close(self) -> None:
        """Close the database. Idempotent."""
        self._db.close()


def add(database: Database, action: Action) -> None:
    """A line, as part of whatever transaction is open."""
    details = json.dumps(action.details, separators=(",", ":"))
    database.run(_INSERT, (time.time(), action.actor, action.action, action.target, details))


def local_user() -> str:
    """Who runs this process, for people."""
    uid = os.getuid()
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"uid {uid}"
