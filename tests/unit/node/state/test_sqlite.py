"""SQLite's own."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hotbed.errors import Error, NodeUnavailable
from hotbed.node.state.sqlite import SqliteDatabase, statements
from tests.unit.node.state.places import SCHEMA


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    """Also under a umask that would let everybody read it."""
    SqliteDatabase(tmp_path / "home" / "x.db", SCHEMA).close()

    assert stat.S_IMODE((tmp_path / "home" / "x.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_others_that_look_in_leave_the_log_of_a_process_with_two_connections(tmp_path: Path) -> None:
    """The last to leave removes the write-ahead log: who still holds the file must not be taken for gone."""
    path = tmp_path / "x.db"
    first = SqliteDatabase(path, SCHEMA)
    first.run("CREATE TABLE a (x)")
    second = SqliteDatabase(path, SCHEMA)
    look = f"import sqlite3; db = sqlite3.connect({str(path)!r}); db.execute('SELECT * FROM a').fetchall(); db.close()"
    subprocess.run([sys.executable, "-c", look], check=True)
    for number in range(100):
        first.run("INSERT INTO a VALUES (?)", (number,))

    assert (tmp_path / "x.db-wal").exists()
    count = f"import sqlite3; print(*sqlite3.connect({str(path)!r}).execute('SELECT count(*) FROM a').fetchone())"
    assert subprocess.run([sys.executable, "-c", count], check=True, capture_output=True).stdout == b"100\n"
    second.close()
    first.close()


def test_a_directory_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    """As what it is."""
    (tmp_path / "x.db").mkdir()

    with pytest.raises(NodeUnavailable, match="Is a directory"):
        SqliteDatabase(tmp_path / "x.db", SCHEMA)


def test_a_file_that_is_no_database_is_named_with_what_to_do(tmp_path: Path) -> None:
    """A disk that failed is no bug of ours."""
    place = tmp_path / "ledger.db"
    place.write_bytes(b"no database at all, and longer than its header" * 100)

    with pytest.raises(Error, match=r"ledger\.db cannot be used") as refused:
        SqliteDatabase(place, SCHEMA)

    assert refused.value.hint and "backup" in refused.value.hint
    assert not refused.value.retryable


def test_a_migration_that_fails_leaves_the_version_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a migration is none."""
    scripts = [(1, "CREATE TABLE a (x);"), (2, "CREATE TABLE b (x);\nCREATE TABLE a (x);")]
    monkeypatch.setattr("hotbed.node.state.sqlite.pending", lambda package, version: scripts[version:])
    with pytest.raises(Exception, match="already exists"):
        SqliteDatabase(tmp_path / "x.db", SCHEMA)
    scripts[1] = (2, "CREATE TABLE b (x);")
    database = SqliteDatabase(tmp_path / "x.db", SCHEMA)

    assert database.rows("PRAGMA user_version") == [{"user_version": 2}]
    database.close()


def test_a_script_is_taken_apart_at_its_semicolons() -> None:
    """Those in comments and texts are none."""
    assert len(statements("-- one; two\nCREATE TABLE a (x);\nINSERT INTO a\nVALUES (';');\n")) == 2


def test_place_that_cannot_be_written_is_named() -> None:
    """With what to do about it."""
    with pytest.raises(NodeUnavailable, match="cannot keep its state in /dev/null/x: Not a directory"):
        SqliteDatabase(Path("/dev/null/x/ledger.db"), "hotbed.node.ledger.migrations")
