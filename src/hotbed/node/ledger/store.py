"""The ledger's database: SQLite in WAL mode, one connection that writes, any number that read.

Requests and outputs are blobs, kept once by their SHA-256 and compressed where that helps: the 512 siblings of a group
share their task, and most outputs repeat. The schema is the numbered files in `migrations/`, applied in order; the
database's `user_version` is the number of the last one, and a database from a newer Hotbed is refused, not guessed at.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hotbed.errors import Error, UnknownRollout
from hotbed.node.ledger.entry import Entry

_PACK_FROM = 256
_COLUMNS = (
    "id kind at tenant sandbox_id group_id label template template_digest seed determinism seed_ack isolation status "
    "exit_code signal reward request_hash stdout_hash stderr_hash stdout_total stderr_total fork_ms exec_ms total_ms "
    "details"
).split()
_INSERT = f"INSERT OR IGNORE INTO rollouts ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_COMMON = {"status": "ok", "label": "", "tenant": ""}  # what most lines have; indexes are of the lines that have not
_FILTERS = ("id", "template", "status", "kind", "sandbox_id", "group_id", "label", "tenant")


class Store:
    """One connection. Use each from one thread."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")  # a kill loses nothing; a power cut may lose the last commits
        self._db.execute("PRAGMA busy_timeout=10000")
        migrate(self._db)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def add(self, entries: Iterable[Entry]) -> None:
        """Insert entries in one transaction. One that is there already is left as it is."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for entry in entries:
                self._db.execute(_INSERT, self._row(entry))
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _row(self, entry: Entry) -> list[Any]:
        hashes = {f"{name}_hash": self._keep(getattr(entry, name)) for name in ("request", "stdout", "stderr")}
        details = json.dumps(entry.details, separators=(",", ":"))
        computed = {**hashes, "details": details}
        return [computed[name] if name in computed else getattr(entry, name) for name in _COLUMNS]

    def _keep(self, data: bytes) -> str:
        """Keep a blob; its hash. Nothing is kept for no bytes."""
        if not data:
            return ""
        digest = hashlib.sha256(data).hexdigest()
        packed = zlib.compress(data, 1) if len(data) >= _PACK_FROM else data
        small = len(packed) < len(data)
        self._db.execute(
            "INSERT OR IGNORE INTO blobs (hash, size, packed, data) VALUES (?, ?, ?, ?)",
            (digest, len(data), int(small), packed if small else data),
        )
        return digest

    def blob(self, digest: str) -> bytes:
        """A blob's bytes."""
        if not digest:
            return b""
        row = self._db.execute("SELECT packed, data FROM blobs WHERE hash = ?", (digest,)).fetchone()
        if row is None:
            raise UnknownRollout(f"the ledger no longer holds blob {digest[:12]}", hint="retention has removed it")
        return zlib.decompress(row["data"]) if row["packed"] else bytes(row["data"])

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
        return [_plain(row) for row in self._db.execute(sql, (*values, limit))]

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """What a query of a read model answers, whole."""
        return [dict(row) for row in self._db.execute(sql, tuple(values))]

    def get(self, rollout_id: str) -> dict[str, Any]:
        """One row, by id or by a prefix of it that no other row has."""
        sql = "SELECT * FROM rollouts WHERE id >= ? AND id < ? LIMIT 2"
        rows = self._db.execute(sql, (rollout_id, rollout_id + "\U0010ffff")).fetchall()
        exact = [row for row in rows if row["id"] == rollout_id]
        found = exact or rows
        if len(found) != 1 or not rollout_id:
            what = "more than one rollout begins with" if found else "the ledger holds no rollout"
            raise UnknownRollout(f"{what} {rollout_id!r}", hint="`hotbed rollouts` lists them")
        return _plain(found[0])

    def history(self, sandbox_id: str, upto_seq: int) -> list[dict[str, Any]]:
        """What happened in one sandbox up to a row, oldest first."""
        sql = "SELECT * FROM rollouts WHERE sandbox_id = ? AND seq <= ? ORDER BY seq"
        return [_plain(row) for row in self._db.execute(sql, (sandbox_id, upto_seq))]

    def usage(self, *, tenant: str, since: float, until: float) -> dict[str, float]:
        """What one tenant used in a span of time."""
        sql = (
            "SELECT kind, count(*), total(exec_ms), total(stdout_total + stderr_total) FROM rollouts "
            "WHERE tenant = ? AND at >= ? AND at < ? GROUP BY kind"
        )
        rows = list(self._db.execute(sql, (tenant, since, until)))
        counts = {f"{kind}s": count for kind, count, _, _ in rows}
        return {
            "sandboxes": counts.get("creates", 0),
            "rollouts": counts.get("rollouts", 0),
            "execs": counts.get("execs", 0),
            "grades": counts.get("grades", 0),
            "exec_seconds": round(sum(row[2] for row in rows) / 1e3, 3),
            "output_bytes": int(sum(row[3] for row in rows)),
        }

    def count(self) -> int:
        """How many rows there are."""
        return int(self._db.execute("SELECT count(*) FROM rollouts").fetchone()[0])

    def size(self) -> int:
        """Bytes in use in the database file."""
        (pages,) = self._db.execute("PRAGMA page_count").fetchone()
        (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
        (page,) = self._db.execute("PRAGMA page_size").fetchone()
        return int((pages - free) * page)

    def retain(self, *, newer_than: float, max_bytes: int) -> int:
        """Delete rows older than a time, then the oldest until the size fits; how many went."""
        gone = self._db.execute("DELETE FROM rollouts WHERE at < ?", (newer_than,)).rowcount
        if gone:
            self._drop_orphans()
        while self.size() > max_bytes and (total := self.count()):
            part = max(1, total // 10)
            oldest = "DELETE FROM rollouts WHERE seq IN (SELECT seq FROM rollouts ORDER BY seq LIMIT ?)"
            gone += self._db.execute(oldest, (part,)).rowcount
            self._drop_orphans()
        return gone

    def _drop_orphans(self) -> None:
        used = " UNION ".join(f"SELECT {name}_hash FROM rollouts" for name in ("request", "stdout", "stderr"))
        self._db.execute(f"DELETE FROM blobs WHERE hash NOT IN ({used})")


def migrate(db: sqlite3.Connection, package: str | None = __package__) -> None:
    """Bring a database to the schema in a package's migrations. Raises when it comes from a newer Hotbed."""
    found = migrations(package)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(found):
        raise Error(
            f"the database was written by a newer Hotbed (schema {version}, this one knows {len(found)})",
            hint="upgrade, or set HOTBED_HOME to another directory",
        )
    for number, script in enumerate(found[version:], version + 1):
        db.executescript(f"BEGIN;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")


def migrations(package: str | None = __package__) -> list[str]:
    """The migrations' SQL, in order."""
    folder = importlib.resources.files(str(package)) / "migrations"
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    return [(folder / name).read_text() for name in names]


def _plain(row: sqlite3.Row) -> dict[str, Any]:
    found = dict(row)
    found["details"] = json.loads(found["details"])
    return found
