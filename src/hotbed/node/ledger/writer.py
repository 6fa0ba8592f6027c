"""The thread that moves what was noted from the spool into the database.

It lets a little queue up, unless somebody wants to read, and commits it in one transaction: a wake-up and a commit for
each rollout would take time from the next one.

A database that cannot be written now, because it is away or its disk is full, costs nothing but time: what was to be
committed is set aside, which is to say forgotten here and known to be in the spool, and every few seconds it is tried
whether the spool's segments can be moved after all. What queues up behind a database that takes a request and does not
answer is set aside as well. So no outage fills the memory, and none needs a restart. What the
database refuses for what it is, however often it is asked, is lost: it is counted, and named in the log.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from hotbed.errors import NodeUnavailable
from hotbed.node.ledger.entry import Entry
from hotbed.node.ledger.spool import Spool, records
from hotbed.node.ledger.store import Store
from hotbed.node.ledger.usage import UsageRow, keep

log = logging.getLogger(__name__)

_BATCH = 512
_GATHER_S = 0.25  # a commit writes each page that was touched, of each index: once for all that were gathered
_QUEUE = 20_000
_FLUSH_S = 30.0
_RETAIN_EVERY_S = 300.0
_GROWTH = 8  # and whenever such a part of what may be kept was added since
_AGAIN_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # the last one for as long as it takes
decode = msgspec.msgpack.Decoder(Entry).decode


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


class Writer:
    """One ledger's. It owns its connection, and works from the moment it is made."""

    def __init__(self, store: Store, spool: Spool, retention: Retention) -> None:
        self._store = store
        self._spool = spool
        self._retention = retention
        self._queue: queue.SimpleQueue[tuple[int, Entry] | threading.Event | UsageRows | None] = queue.SimpleQueue()
        self._wanted = threading.Event()  # somebody waits for what has queued up
        self._behind: Counter[int] = Counter()  # entries that were set aside, by the segment that holds them
        self._lock = threading.Lock()  # over `_behind`
        self._tries = 0
        self._again_s = 0.0
        self.lost = 0
        self._thread = threading.Thread(target=self._run, name="hotbed-ledger", daemon=True)
        self._thread.start()

    def put(self, segment: int, entry: Entry) -> None:
        """Have an entry of a segment committed, soon."""
        if self._queue.qsize() < _QUEUE:
            self._queue.put((segment, entry))
        else:
            self._set_aside({segment: 1})

    def put_usage(self, rows: UsageRows) -> None:
        """Have sums kept, soon."""
        self._queue.put(rows)

    def flush(self) -> None:
        """Wait until all that was put is committed, or set aside. Raises `NodeUnavailable` when that takes too long."""
        done = threading.Event()
        self._queue.put(done)
        self._wanted.set()
        if not done.wait(timeout=_FLUSH_S):
            raise silent()

    def stats(self) -> dict[str, int]:
        """What waits to be committed, what waits for the database to take it again, and what is lost."""
        return {"waiting": self._queue.qsize(), "behind": sum(tuple(self._behind.values())), "lost": self.lost}

    def is_alive(self) -> bool:
        """Whether it was not closed."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Commit what was put, if that can be done now, and end. Idempotent."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._wanted.set()
            self._thread.join(timeout=60.0)

    def _run(self) -> None:
        retain_at, grown = time.monotonic(), 0
        more = True
        while more:
            batch, waiting, more = self._collect()
            self._catch_up(now=bool(waiting) or not more)
            if batch:
                self._commit(batch)
                grown += sum(len(entry.request) + len(entry.stdout) + len(entry.stderr) for _, entry in batch)
            if time.monotonic() >= retain_at or grown > self._retention.max_bytes // _GROWTH:
                retain_at, grown = time.monotonic() + _RETAIN_EVERY_S, 0
                self._retain()
            for event in waiting:
                event.set()
        self._store.close()

    def _collect(self) -> tuple[list[tuple[int, Entry]], list[threading.Event], bool]:
        """What has queued up: entries, those who wait for them, and whether to go on."""
        batch: list[tuple[int, Entry]] = []
        try:
            item = self._queue.get(timeout=max(0.0, self._again_s - time.monotonic()) if self._behind else None)
        except queue.Empty:
            return batch, [], True
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
        counts = Counter(segment for segment, _ in batch)
        if not self._behind:
            try:
                self.lost += add(self._store, [entry for _, entry in batch])
            except NodeUnavailable as error:
                log.error("event=ledger_behind error=%r", error.message)
                self._put_off()
            else:
                self._committed(counts)
                return
        self._set_aside(counts)

    def _set_aside(self, counts: Mapping[int, int]) -> None:
        with self._lock:
            self._behind.update(counts)

    def _catch_up(self, *, now: bool) -> None:
        """Move what was set aside, if it is time to try."""
        if not self._behind or (time.monotonic() < self._again_s and not now):
            return
        with self._lock:
            behind = sorted(self._behind.items())
        try:
            for segment, count in behind:  # whatever else is set aside meanwhile is in nobody's count yet
                entries = [decode(record) for record in records(self._spool.path(segment))]
                for start in range(0, len(entries), _BATCH):
                    self.lost += add(self._store, entries[start : start + _BATCH])
                self._committed({segment: count})
                with self._lock:
                    self._behind -= Counter({segment: count})
        except (NodeUnavailable, OSError) as error:
            log.warning("event=ledger_still_behind entries=%d error=%r", self._behind.total(), str(error))
            self._put_off()
        else:
            self._tries = 0
            log.info("event=ledger_caught_up entries=%d", sum(count for _, count in behind))

    def _put_off(self) -> None:
        self._again_s = time.monotonic() + _AGAIN_S[min(self._tries, len(_AGAIN_S) - 1)]
        self._tries += 1

    def _committed(self, counts: Mapping[int, int]) -> None:
        for segment, count in counts.items():
            self._spool.committed(segment, count)

    def _keep(self, usage: UsageRows) -> None:
        try:
            keep(self._store, usage.run, usage.rows)
        except Exception as error:  # noqa: BLE001  the same boundary; what is told next replaces it
            log.error("event=usage_write_failed rows=%d error=%r", len(usage.rows), error)

    def _retain(self) -> None:
        oldest = time.time() - self._retention.days * 86400
        try:
            gone = self._store.retain(newer_than=oldest, max_bytes=self._retention.max_bytes)
        except Exception as error:  # noqa: BLE001  the same boundary
            log.error("event=ledger_retention_failed error=%r", error)
            return
        if gone:
            log.info("event=ledger_retention removed=%d", gone)


def silent() -> NodeUnavailable:
    """The database has a request, and neither answers nor hangs up."""
    return NodeUnavailable("the ledger's database does not answer", retry_after_s=5.0)


def add(store: Store, entries: Sequence[Entry]) -> int:
    """Commit entries, but for those that the database refuses for what they are; how many of these there were.

    Raises `NodeUnavailable` when it refuses whatever it is asked.
    """
    try:
        store.add(entries)
    except NodeUnavailable:
        raise
    except Exception as error:  # noqa: BLE001  the writer thread's boundary: a bad entry must not take others with it
        if len(entries) > 1:
            return sum(add(store, [entry]) for entry in entries)
        log.error("event=ledger_refused id=%s error=%r", entries[0].id, error)
        return 1
    return 0
