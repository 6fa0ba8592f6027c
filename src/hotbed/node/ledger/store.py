"""The ledger's database, in SQLite or PostgreSQL: one connection that writes, any number that read.

Requests and outputs are blobs, kept once by their SHA-256 and compressed where that helps: the 512 siblings of a group
share their task, and most outputs repeat. The schema is the numbered files in `migrations/`.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hotbed.errors import Error, UnknownRollout
from hotbed.node.ledger import egress
from hotbed.node.ledger.entry import Entry
from hotbed.node.state.database import Where, open_database

_PACK_FROM = 256
_COLUMNS = (
    "id kind at tenant sandbox_id group_id label template template_digest seed determinism seed_ack isolation status "
    "exit_code signal reward request_hash stdout_hash stderr_hash stdout_total stderr_total fork_ms exec_ms total_ms "
    "details"
).split()
_INSERT = (
    f"INSERT INTO rollouts ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) ON CONFLICT DO NOTHING"
)
_INSERT_BLOB = "INSERT INTO blobs (hash, size, packed, data) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_COMMON = {"status": "ok", "label": "", "tenant": ""}  # what most lines have; indexes are of the lines that have not
_FILTERS = ("id", "template", "status", "kind", "sandbox_id", "group_id", "label", "tenant")


class Store:
    """One connection. Use each from one thread."""

    def __init__(self, where: Where) -> None:
        self._db = open_database(where, str(__package__))

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def add(self, entries: Iterable[Entry]) -> None:
        """Insert entries in one transaction. One that is there already is left as it is."""
        blobs: dict[str, Sequence[object]] = {}
        with self._db.writing():
            lines = []
            for entry in entries:
                if entry.kind == "egress":
                    egress.add(self._db, entry)
                else:
                    lines.append(_row(entry, blobs))
            self._db.run_each(_INSERT_BLOB, [blobs[digest] for digest in sorted(blobs)])  # none waits for another's
            self._db.run_each(_INSERT, lines)

    def blob(self, digest: str) -> bytes:
        """A blob's bytes."""
        if not digest:
            return b""
        rows = self._db.rows("SELECT packed, data FROM blobs WHERE hash = ?", (digest,))
        if not rows:
            raise UnknownRollout(f"the ledger no longer holds blob {digest[:12]}", hint="retention has removed it")
        data = bytes(rows[0]["data"])
        return zlib.decompress(data) if rows[0]["packed"] else data

    def find(
        self, *, limit: int = 50, before: int | None = None, where: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """Rows without their blobs, newest first. `before` is the `seq` of the last row of the page before."""
        conditions: list[str] = ["seq < ?"]
        values: list[Any] = [before if before is not None else 2**62]
        for name, value in (where or {}).items():
            if name not in _FILTERS:
                raise Error(f"rollouts cannot be filtered by {name!r}")
            conditions.append(f"{name} = ?")
            values.append(value)
            if value != _COMMON.get(name, value):
                conditions.append(f"{name} <> '{_COMMON[name]}'")  # what the index of the others is declared by
        sql = f"SELECT * FROM rollouts WHERE {' AND '.join(conditions)} ORDER BY seq DESC LIMIT ?"
        return [_plain(row) for row in self._db.rows(sql, (*values, limit))]

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """What a query of a read model answers, whole."""
        return self._db.rows(sql, values)

    def change(self, changes: Iterable[tuple[str, Sequence[object]]]) -> None:
        """Statements with their values, in one transaction."""
        with self._db.writing():
            for sql, values in changes:
                self._db.run(sql, values)

    def get(self, rollout_id: str) -> dict[str, Any]:
        """One row, by id or by a prefix of it that no other row has."""
        sql = "SELECT * FROM rollouts WHERE id >= ? AND id < ? LIMIT 2"
        rows = self._db.rows(sql, (storable(rollout_id), storable(rollout_id) + "\U0010ffff"))
        exact = [row for row in rows if row["id"] == rollout_id]
        found = exact or rows
        if len(found) != 1 or not rollout_id:
            what = "more than one rollout begins with" if found else "the ledger holds no rollout"
            gone = "" if found else "; what is older than the node's ledger_days, or too much, has been removed"
            raise UnknownRollout(f"{what} {rollout_id!r}", hint=f"`hotbed rollouts` lists them{gone}")
        return _plain(found[0])

    def history(self, sandbox_id: str, upto_seq: int) -> list[dict[str, Any]]:
        """What happened in one sandbox up to a row, oldest first."""
        sql = "SELECT * FROM rollouts WHERE sandbox_id = ? AND seq <= ? ORDER BY seq"
        return [_plain(row) for row in self._db.rows(sql, (sandbox_id, upto_seq))]

    def attempts(self, *, limit: int, before: int | None, where: Mapping[str, str]) -> list[dict[str, Any]]:
        """What sandboxes tried on the network, newest first."""
        return egress.find(self._db, limit=limit, before=before, where=where)

    def count(self) -> int:
        """How many rows there are."""
        return int(self._db.rows("SELECT count(*) AS count FROM rollouts")[0]["count"])

    def size(self) -> int:
        """Bytes in use."""
        return self._db.size()

    def retain(self, *, newer_than: float, max_bytes: int) -> int:
        """Delete rows older than a time, then the oldest until the size fits; how many went."""
        gone = self._drop("at < ?", newer_than)
        egress.retain(self._db, newer_than=newer_than)
        while self.size() > max_bytes and (total := self.count()):
            gone += self._drop("seq IN (SELECT seq FROM rollouts ORDER BY seq LIMIT ?)", max(1, total // 10))
            egress.drop_oldest(self._db)
        return gone

    def _drop(self, which: str, value: float) -> int:
        """Rows, and the blobs that nobody needs then: alone, since others may just be adding rows that need them."""
        used = " UNION ".join(f"SELECT {name}_hash FROM rollouts" for name in ("request", "stdout", "stderr"))
        with self._db.writing(alone=True):
            gone = self._db.run(f"DELETE FROM rollouts WHERE {which}", (value,))
            if gone:
                self._db.run(f"DELETE FROM blobs WHERE hash NOT IN ({used})")
        return gone


def _row(entry: Entry, blobs: dict[str, Sequence[object]]) -> list[Any]:
    """The row of an entry, whose blobs come to those that are to be kept."""
    hashes = {f"{name}_hash": _keep(getattr(entry, name), blobs) for name in ("request", "stdout", "stderr")}
    details = json.dumps(entry.details, separators=(",", ":")) if entry.details else "{}"
    computed = {**hashes, "details": details}
    return [computed[name] if name in computed else storable(getattr(entry, name)) for name in _COLUMNS]


def _keep(data: bytes, blobs: dict[str, Sequence[object]]) -> str:
    """Keep a blob; its hash. Nothing is kept for no bytes."""
    if not data:
        return ""
    digest = hashlib.sha256(data).hexdigest()
    if digest not in blobs:
        packed = zlib.compress(data, 1) if len(data) >= _PACK_FROM else data
        small = len(packed) < len(data)
        blobs[digest] = (digest, len(data), int(small), packed if small else data)
    return digest


def storable(value: Any) -> Any:
    """A text as any database keeps it: no NUL, no half of a surrogate pair."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "details": json.loads(row["details"])}
