"""The ledger as the node uses it: a note on the hot path, a writer thread behind it, readers beside it.

`note` appends the entry to the spool and queues it; when it returns, the entry outlives this process, so whatever was
answered to a client is in the ledger, or on its way: `writer` moves it there. When the spool's own disk refuses, work
goes on and the loss is counted and shown (`lost` in the statistics, an error in the log): a full disk must not stop a
training run, and must not go unseen either.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hotbed.node.ledger.entry import Entry
from hotbed.node.ledger.spool import Spool, records, segments
from hotbed.node.ledger.store import Store
from hotbed.node.ledger.usage import UsageRow
from hotbed.node.ledger.writer import Retention, UsageRows, Writer, add, decode, silent
from hotbed.node.state.database import place_of

T = TypeVar("T")

log = logging.getLogger(__name__)

PATIENCE_S = 30.0  # with who reads at this moment
_encode = msgspec.msgpack.Encoder().encode


class Ledger:
    """What happened on this node, kept below `home` or in the database of a DSN; the spool is always below `home`."""

    def __init__(self, home: Path, *, retention: Retention | None = None, dsn: str = "") -> None:
        where = place_of(home, "ledger", dsn)
        store = Store(where)
        take_in(home / "spool", store)
        self._place = SpoolPlace.make(home / "spool")
        self._spool = Spool(self._place.directory)
        self._reader = Store(where)
        self._lock = threading.Lock()
        self._lost = 0
        self._writer = Writer(store, self._spool, retention or Retention())

    def note(self, entry: Entry) -> None:
        """Keep an entry. It survives this process from the moment this returns. Call it from one thread."""
        try:
            segment = self._spool.append(_encode(entry))
        except OSError as error:
            self._lost += 1
            log.error("event=spool_refused id=%s lost=%d error=%r", entry.id, self._lost, error)
            return
        self._writer.put(segment, entry)

    def keep_usage(self, run: str, rows: list[UsageRow]) -> None:
        """Keep what was used, soon. What cannot be kept is in the sums that are told next time."""
        self._writer.put_usage(UsageRows(run=run, rows=tuple(rows)))

    def read(self, look: Callable[[Store], T]) -> T:
        """Look something up, with everything noted so far in view, if the database takes it. Blocks.

        Raises `NodeUnavailable` when the database is away.
        """
        self._writer.flush()
        if not self._lock.acquire(timeout=PATIENCE_S):
            raise silent()
        try:
            return look(self._reader)
        finally:
            self._lock.release()

    def flush(self) -> None:
        """Wait until all that was noted is committed, or waits in the spool for a database that is away."""
        self._writer.flush()

    def stats(self) -> dict[str, Any]:
        """Counters for the node's statistics."""
        told = self._writer.stats()
        return {**told, "lost": told["lost"] + self._lost}

    def close(self) -> None:
        """Commit what is queued and close. Idempotent."""
        if self._writer.is_alive():
            self._writer.close()
            self._spool.close()
            self._place.leave()
            self._reader.close()


class SpoolPlace:
    """A directory for one node's spool, locked for as long as the node lives: several nodes may share a home."""

    def __init__(self, directory: Path, lock: int) -> None:
        self.directory = directory
        self._lock = lock

    @classmethod
    def make(cls, parent: Path) -> SpoolPlace:
        """A new one."""
        directory = parent / secrets.token_hex(8)
        directory.mkdir(mode=0o700, parents=True)
        place = cls.take(directory)
        assert place is not None, "nobody else knows its name"
        return place

    @classmethod
    def take(cls, directory: Path) -> SpoolPlace | None:
        """One whose node is gone; None while it lives."""
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return cls(directory, fd)

    def leave(self) -> None:
        """Unlock it, and remove it when it is empty."""
        with contextlib.suppress(OSError):  # a spool that could not be committed stays for the next start
            self.directory.rmdir()
        os.close(self._lock)


def take_in(parent: Path, store: Store) -> int:
    """Commit what nodes that are gone had spooled and not committed; how many entries."""
    taken = 0
    for directory in sorted(parent.glob("*/")):
        place = SpoolPlace.take(directory)
        if place is None:
            continue
        for path in segments(directory):
            entries = [decode(record) for record in records(path)]
            add(store, entries)
            path.unlink()
            taken += len(entries)
        place.leave()
    if taken:
        log.info("event=ledger_recovered entries=%d", taken)
    return taken
