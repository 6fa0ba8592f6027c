"""SQLite: a file in WAL mode, one that writes at a time, any number that read meanwhile."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hotbed.errors import Error, NodeUnavailable
from hotbed.node.state.migrations import pending


class SqliteDatabase:
    """One connection. A file that is new can be read by its owner alone."""

    def __init__(self, path: Path, package: str) -> None:
        try:
            _prepare(path)
        except OSError as error:
            raise NodeUnavailable(
                f"the node cannot keep its state in {path.parent}: {error.strerror}",
                hint="set HOTBED_HOME to a directory that it may write",
            ) from None
        self._path = path
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA busy_timeout=10000")
        try:
            self._migrate(package)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")  # a kill loses nothing; a power cut may lose the last commits
        except BaseException as error:
            self._db.close()
            if type(error) is sqlite3.DatabaseError:
                raise _unusable(path, error) from None
            raise

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Change something; how many rows."""
        return self._execute(sql, values).rowcount

    def run_each(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Change something with each of these values, within the caller's transaction."""
        with self._answering():
            self._db.executemany(sql, rows)

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Ask for something."""
        return [dict(row) for row in self._execute(sql, values)]

    def _execute(self, sql: str, values: Sequence[object]) -> sqlite3.Cursor:
        with self._answering():
            return self._db.execute(sql, tuple(values))

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if type(error) is sqlite3.DatabaseError:  # none of its kinds: the file itself
                raise _unusable(self._path, error) from None
            if isinstance(error, sqlite3.OperationalError):  # another writes, or the disk is full or gone
                raise NodeUnavailable(f"the node's database {self._path} cannot be used now: {error}") from None
            raise

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[None]:
        """A transaction. On SQLite whoever writes is alone."""
        self._execute("BEGIN IMMEDIATE", ())
        try:
            yield
            self._execute("COMMIT", ())
        except BaseException:
            if self._db.in_transaction:  # some failures have ended it themselves
                self._db.execute("ROLLBACK")
            raise

    def size(self) -> int:
        """Bytes in use in the file."""
        (pages,) = self._db.execute("PRAGMA page_count").fetchone()
        (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
        (page,) = self._db.execute("PRAGMA page_size").fetchone()
        return int((pages - free) * page)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _migrate(self, package: str) -> None:
        """Nothing is written before it is known that the schema is not a newer one's."""
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        for number, script in pending(package, version):
            with self.writing():
                (now,) = self._db.execute("PRAGMA user_version").fetchone()
                if now >= number:
                    continue  # another process came first
                for statement in statements(script):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {number}")


def _prepare(path: Path) -> None:
    """Make the file where there is none; raises `OSError` where it cannot be written.

    One that exists is never opened here: closing it would end every lock that this process has on it (POSIX), and with
    them what keeps others from removing the write-ahead log under a connection that lives.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not path.is_file():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)) from None
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def statements(script: str) -> list[str]:
    """The statements of a script: `executescript` would commit what it finds open."""
    found, held = [], ""
    for line in script.splitlines(keepends=True):
        held += line
        if sqlite3.complete_statement(held):
            found.append(held)
            held = ""
    return found


def _unusable(path: Path, error: sqlite3.DatabaseError) -> Error:
    """Nothing that waiting would mend."""
    return Error(
        f"the node's database {path} cannot be used: {error}",
        hint="restore a backup of it (docs/guides/state.md), or move it away to start without what it held",
    )
