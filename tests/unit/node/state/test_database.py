"""What holds for a database of either kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.errors import Error
from hotbed.node.state.database import Database, Where, open_database, place_of
from tests.unit.node.state.places import SCHEMA, set_version


def test_what_is_written_is_there_for_others(where: Where) -> None:
    """Values of every kind that is kept."""
    first, second = open_database(where, SCHEMA), open_database(where, SCHEMA)
    row = ("k", "t", "pro", "run", "", b"\x00\xff", 1.5, None, None)
    first.run("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    [found] = second.rows("SELECT * FROM keys WHERE created_at > ?", (1,))
    assert (bytes(found["digest"]), found["created_at"], found["expires_at"]) == (b"\x00\xff", 1.5, None)
    for database in (first, second):
        database.close()
        database.close()


def test_a_transaction_is_all_or_nothing(where: Where) -> None:
    """What failed half way leaves no trace, and the connection is good for the next."""
    database = open_database(where, SCHEMA)
    with pytest.raises(ZeroDivisionError), database.writing(alone=True):
        put(database, "lost")
        raise ZeroDivisionError
    with database.writing():
        put(database, "kept")

    assert [row["id"] for row in database.rows("SELECT id FROM keys")] == ["kept"]
    database.close()


def test_text_is_compared_byte_by_byte(where: Where) -> None:
    """A prefix is found by an index on both, whatever the host's language."""
    database = open_database(where, SCHEMA)
    for name in ("b", "B", "a", "_"):
        put(database, name)

    assert [row["id"] for row in database.rows("SELECT id FROM keys ORDER BY id")] == ["B", "_", "a", "b"]
    database.close()


def test_a_newer_database_is_refused_and_left_alone(where: Where) -> None:
    """A downgrade must not guess at a schema, and must not make it worse."""
    open_database(where, SCHEMA).close()
    set_version(where, 99)
    before = where.read_bytes() if isinstance(where, Path) else None

    with pytest.raises(Error, match="newer Hotbed"):
        open_database(where, SCHEMA)

    assert (where.read_bytes() if isinstance(where, Path) else None) == before
    set_version(where, 99, expected=99)


def test_an_older_database_migrates_and_keeps_its_rows(where: Where, older: str) -> None:
    """An upgrade is a restart."""
    database = open_database(where, older)
    put(database, "from before")
    database.close()

    database = open_database(where, SCHEMA)

    assert [row["id"] for row in database.rows("SELECT id FROM keys")] == ["from before"]
    set_version(where, 3, expected=3)
    assert database.rows("SELECT * FROM audit") == []
    database.close()


def test_a_part_is_in_a_file_of_its_own_or_in_the_database_that_was_named(tmp_path: Path) -> None:
    """One setting moves all of them."""
    assert place_of(tmp_path, "keys", "") == tmp_path / "keys.db"
    assert place_of(tmp_path, "keys", "postgresql:///x") == "postgresql:///x"


def put(database: Database, name: str) -> None:
    """A row."""
    database.run("INSERT INTO keys VALUES (?, 't', 'pro', 'run', '', ?, 1.0, NULL, NULL)", (name, b""))
