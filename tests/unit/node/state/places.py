"""Schemas for the tests of databases, and a look at their versions."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hotbed.node.state.database import Where

SCHEMA = "hotbed.node.keys"


def set_version(where: Where, version: int, *, expected: int | None = None) -> None:
    """Change what a database says of its schema; first check what it says now."""
    if isinstance(where, Path):
        db = sqlite3.connect(where)
        (found,) = db.execute("PRAGMA user_version").fetchone()
        db.execute(f"PRAGMA user_version = {version}")
        db.close()
    else:
        import psycopg

        with psycopg.connect(where) as connection:
            row = connection.execute("SELECT version FROM hotbed.versions WHERE part = 'keys'").fetchone()
            found = row[0] if row else None
            connection.execute("UPDATE hotbed.versions SET version = %s", (version,))
    assert expected is None or found == expected
