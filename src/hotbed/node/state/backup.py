"""A copy of a node's state, whole and of one moment, while the node goes on.

What is copied is what a node cannot make again: the databases under its home, and the pepper of its keys. PostgreSQL
has tools of its own for that (`pg_dump`); then only the pepper is left to copy.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from hotbed.errors import InvalidRequest

PARTS = ("keys.db", "ledger.db")
PEPPER = "keys.pepper"


def back_up(home: Path, to: Path) -> list[str]:
    """Copy a home into a new directory that only its owner can enter; the names of what was copied."""
    try:
        to.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise InvalidRequest(f"{to} is there already", hint="name a directory that is not there yet") from None
    done = [name for name in PARTS if (home / name).exists()]
    for name in done:
        _copy(home / name, to / name)
    if (home / PEPPER).exists():
        shutil.copyfile(home / PEPPER, to / PEPPER)
        os.chmod(to / PEPPER, 0o600)
        done.append(PEPPER)
    return done


def _copy(source: Path, target: Path) -> None:
    """SQLite's own way: a copy of the file alone would miss what is in its write-ahead log."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as live:
        with closing(sqlite3.connect(target)) as copy:
            live.backup(copy)
