"""The ledger as the node uses it: a note on the hot path, a writer thread behind it, readers beside it.

`note` appends the entry to the spool and queues it; when it returns, the entry outlives this process, so whatever was
answered to a client is in the ledger. The writer lets a little queue up, unless somebody wants to read, and commits it
in one transaction: a wake-up and a commit for each rollout would take time from the next one. When the disk refuses,
work goes on and the loss is counted and shown (`lost` in the statistics, an error in the log): a full disk must not
stop a training run, and must not go unseen either.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import queue
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hotbed.errors import NodeUnavailable
from hotbed.node.ledger.entry import Entry
from hotbed.node.ledger.spool import Spool, records, segments
from hotbed.node.ledger.store import Store
from hotbed.node.ledger.usage import UsageRow, keep
from hotbed.node.state.database import place_of

T = TypeVar("T")

log = logging.getLogger(__name__)

_BATCH = 512
_GATHER_S = 0.05
_RETAIN_EVERY_S = 300.0
_PATIENCE_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # with a database that does not answer, until it is restarted
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long and how much the ledger keeps."""

    days: float = 30.0
    max_bytes: int = 4 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRows:
    """Sums of a node's run, on their way to the database."""

    run: str
    rows: tuple[UsageRow, ...]


class Ledger:
    """What happened on this node, kept below `home` or in the database of a DSN; the spool is always below `home`."""

    def __init__(self, home: Path, *, retention: Retention | None = None, dsn: str = "") -> None:
        where = place_of(home, "ledger", dsn)
        self._retention = retention or Retention()
        self._store = Store(where)
        take_in(home / "spool", self._store)
        self._place = SpoolPlace.make(home / "spool")
        self._spool = Spool(self._place.directory)
        self._queue: queue.SimpleQueue[tuple[int, Entry] | threading.Event | UsageRows | None] = queue.SimpleQueue()
        self._wanted = threading.Event()  # somebody waits for what has queued up
        self._reader = Store(where)
        self._lock = threading.Lock()
        self._over = threading.Event()  # nobody has time to wait any more
        self.lost = 0
        self._thread = threading.Thread(target=self._write, name="hotbed-ledger", daemon=True)
        self._thread.start()

    def note(self, entry: Entry) -> None:
        """Keep an entry. It survives this process from the moment this returns. Call it from one thread."""
        try:
            segment = self._spool.append(_encode(entry))
        except OSError as error:
            self._lose(1, error)
            return
        self._queue.put((segment, entry))

    def keep_usage(self, run: str, rows: list[UsageRow]) -> None:
        """Keep what was used, soon. What cannot be kept is in the sums that are told next time."""
        self._queue.put(UsageRows(run=run, rows=tuple(rows)))

    def read(self, look: Callable[[Store], T]) -> T:
        """Look something up, with everything noted so far in view. Blocks: call it off the event loop."""
        self.flush()
        with self._lock:
            return look(self._reader)

    def flush(self) -> None:
        """Wait until all that was noted is committed."""
        done = threading.Event()
        self._queue.put(done)
        self._wanted.set()
        done.wait(timeout=60.0)

    def stats(self) -> dict[str, Any]:
        """Counters for the node's statistics."""
        return {"waiting": self._queue.qsize(), "lost": self.lost}

    def close(self) -> None:
        """Commit what is queued and close. Idempotent."""
        if self._thread.is_alive():
            self._over.set()
            self._queue.put(None)
            self._wanted.set()
            self._thread.join(timeout=60.0)
            self._spool.close()
            self._place.leave()
            self._reader.close()

    def _write(self) -> None:
        retain_at = time.monotonic()
        while True:
            batch, waiting, more = self._collect()
            if batch:
                self._commit(batch)
            if time.monotonic() >= retain_at:
                retain_at = time.monotonic() + _RETAIN_EVERY_S
                self._retain()
            for event in waiting:
                event.set()
            if not more:
                break
        self._store.close()

    def _collect(self) -> tuple[list[tuple[int, Entry]], list[threading.Event], bool]:
        """What has queued up: entries, those who wait for them, and whether to go on."""
        batch: list[tuple[int, Entry]] = []
        item = self._queue.get()
        self._wanted.wait(_GATHER_S)
        while True:
            if item is None:
                return batch, [], False
            if isinstance(item, threading.Event):
                self._wanted.clear()
                return batch, [item], True
            if isinstance(item, UsageRows):
                self._keep(item)
            else:
                batch.append(item)
            if len(batch) >= _BATCH or self._queue.empty():
                return batch, [], True
            item = self._queue.get()

    def _commit(self, batch: list[tuple[int, Entry]]) -> None:
        try:
            self._add([entry for _, entry in batch])
        except Exception as error:  # noqa: BLE001  the writer thread's boundary: it must outlive a full disk
            self._lose(len(batch), error)
            return  # the spool keeps them: the next start takes them in
        for segment, count in Counter(segment for segment, _ in batch).items():
            self._spool.committed(segment, count)

    def _keep(self, usage: UsageRows) -> None:
        try:
            keep(self._store, usage.run, usage.rows)
        except Exception as error:  # noqa: BLE001  the writer thread's boundary, as above
            log.error("event=usage_write_failed rows=%d error=%r", len(usage.rows), error)

    def _add(self, entries: list[Entry]) -> None:
        """Commit; a database that is just being restarted is waited for."""
        for pause_s in _PATIENCE_S:
            try:
                return self._store.add(entries)
            except NodeUnavailable as error:
                log.warning("event=ledger_waits error=%r", error.message)
            if self._over.wait(pause_s):
                break
        self._store.add(entries)

    def _retain(self) -> None:
        oldest = time.time() - self._retention.days * 86400
        try:
            gone = self._store.retain(newer_than=oldest, max_bytes=self._retention.max_bytes)
        except Exception as error:  # noqa: BLE001  as above
            log.error("event=ledger_retention_failed error=%r", error)
            return
        if gone:
            log.info("event=ledger_retention removed=%d", gone)

    def _lose(self, count: int, error: Exception) -> None:
        self.lost += count
        log.error("event=ledger_write_failed entries=%d lost=%d error=%r", count, self.lost, error)


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
            entries = [_decode(record) for record in records(path)]
            store.add(entries)
            path.unlink()
            taken += len(entries)
        place.leave()
    if taken:
        log.info("event=ledger_recovered entries=%d", taken)
    return taken
