"""The ledger's table of what sandboxes tried on the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotbed.errors import Error
from hotbed.node.ledger.entry import Entry
from hotbed.node.state.database import Database

FILTERS = ("sandbox_id", "rollout_id", "template", "kind", "name", "verdict", "tenant")
_COLUMNS = (
    "entry at tenant template sandbox_id rollout_id kind name address port method verdict reason count bytes_up "
    "bytes_down leak"
).split()
_INSERT = f"INSERT INTO egress ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"


def add(db: Database, entry: Entry) -> None:
    """Insert the rows of an entry, within the caller's transaction. One that is there already is left as it is."""
    if db.rows("SELECT seq FROM egress WHERE entry = ? LIMIT 1", (entry.id,)):
        return
    rollout_id = entry.details["rollout_id"]
    same = (entry.tenant, entry.template, entry.sandbox_id, rollout_id)
    for row in entry.details["rows"]:
        told = (row["kind"], row["name"], row["address"], row["port"], row["method"], row["verdict"], row["reason"])
        sums = (row["count"], row["up"], row["down"], int(row["leak"]))
        db.run(_INSERT, (entry.id, row["at"], *same, *told, *sums))


def find(
    db: Database, *, limit: int = 50, before: int | None = None, where: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Rows, newest first. `before` is the `seq` of the last row of the page before."""
    conditions: list[str] = ["seq < ?"]
    values: list[Any] = [before if before is not None else 2**62]
    for name, value in (where or {}).items():
        if name not in FILTERS:
            raise Error(f"egress cannot be filtered by {name!r}")
        conditions.append(f"{name} = ?")
        values.append(value)
    sql = f"SELECT * FROM egress WHERE {' AND '.join(conditions)} ORDER BY seq DESC LIMIT ?"
    return db.rows(sql, (*values, limit))


def retain(db: Database, *, newer_than: float) -> None:
    """Delete what is older than a time."""
    db.run("DELETE FROM egress WHERE at < ?", (newer_than,))


def drop_oldest(db: Database) -> None:
    """Delete the oldest tenth."""
    total = int(db.rows("SELECT count(*) AS total FROM egress")[0]["total"])
    oldest = "DELETE FROM egress WHERE seq IN (SELECT seq FROM egress ORDER BY seq LIMIT ?)"
    db.run(oldest, (-(-total // 10),))
