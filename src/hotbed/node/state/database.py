"""One way to two databases: SQLite in a file, which is the default, and PostgreSQL by its DSN.

Queries and migrations are written once, in the SQL that both read alike: `?` for a value, `ON CONFLICT DO NOTHING`, no
collations (text compares byte by byte on both), and SQLite's names of types, which `postgres` puts into its own words.

A connection is for one thread. What is read or written outside of `writing` is a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

Where = Path | str  # a file, or the DSN of a PostgreSQL database


class Database(Protocol):
    """One connection to a database that has the schema it should have."""

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Change something; how many rows. Raises `NodeUnavailable` when the database does not answer."""
        ...

    def run_each(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Change something with each of these values, within the caller's transaction."""
        ...

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Ask for something."""
        ...

    def writing(self, *, alone: bool = False) -> AbstractContextManager[None]:
        """A transaction: all of it or none. While one writes `alone`, no other writes."""
        ...

    def size(self) -> int:
        """Bytes that the ledger takes."""
        ...

    def close(self) -> None:
        """Close the connection. Idempotent."""
        ...


def open_database(where: Where, package: str) -> Database:
    """Connect, and bring the schema to a package's migrations. Raises when the schema is a newer Hotbed's."""
    if isinstance(where, Path):
        from hotbed.node.state.sqlite import SqliteDatabase

        return SqliteDatabase(where, package)
    from hotbed.node.state.postgres import PostgresDatabase

    return PostgresDatabase(where, package)


def place_of(home: Path, part: str, dsn: str) -> Where:
    """Where a part of a node's state is: in the database that was named, or in a file of its own."""
    return dsn or home / f"{part}.db"
