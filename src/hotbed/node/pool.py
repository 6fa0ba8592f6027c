"""One pool on the node: workers under a lease, handed out, replaced and ended.

The node starts and kills; what passes between a client and its workers it never reads. Filling a pool is all or
nothing. From then on each seat is on its own: `open` gives it a worker that nobody has had, whatever was there before.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from hotbed.errors import NotFound, PoolClosed
from hotbed.node.held import HeldBox
from hotbed.node.leases import Lease
from hotbed.node.nursery import Nursery
from hotbed.pools import workers
from hotbed.pools.workers import End, Held, Worker
from hotbed.runtime.base import Solo, Template
from hotbed.wire.pools import CreatePool, PoolRow, WorkerEnded, WorkerOutput, WorkerRow, WorkerTrouble

STARTS_AT_ONCE = 32

Make = Callable[[int, int], Awaitable[Worker]]  # of seat and generation

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class Pool:
    """n seats and the workers in them. A member of the lease it was made under."""

    request: CreatePool
    template: Template
    isolation: str
    fork: Callable[[], Awaitable[HeldBox]]
    fork_solo: Callable[[Solo], Awaitable[HeldBox]]
    fork_vessel: Callable[[], Awaitable[HeldBox]]
    nursery: Nursery
    on_end: Callable[[Pool], None]
    on_worker: Callable[[Worker], None]
    lease: Lease | None = None
    slots: int | None = None
    id: str = field(default_factory=lambda: f"pl_{secrets.token_hex(12)}")
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    born_s: float = field(default_factory=time.monotonic)
    replaced: int = 0
    over: bool = False
    _workers: dict[int, Worker] = field(default_factory=dict)
    _generation: int = 0
    _leaving: set[Held] = field(default_factory=set)
    _seats: dict[int, asyncio.Lock] = field(default_factory=dict)
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(STARTS_AT_ONCE))

    async def fill(self) -> None:
        """A worker in every seat, or an exception and none."""
        tasks = [self.nursery.start(self._fresh(index), name=f"fill-{self.id}") for index in range(self.request.n)]
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failures:
            raise failures[0]

    async def open(self, index: int) -> Worker:
        """A worker that nobody has had yet. Raises what its fork raised."""
        self.check_open()
        if not 0 <= index < self.request.n:
            raise NotFound(f"pool {self.id} has no worker {index}")
        async with self._seats.setdefault(index, asyncio.Lock()):
            worker = self._workers.get(index)
            if worker is None or worker.state != "waiting":
                worker = await self._fresh(index)
            return worker

    async def seat(self, index: int, make: Make) -> Worker:
        """A worker that `make` makes in a seat, whatever was there before. Raises what `make` raises."""
        self.check_open()
        if not 0 <= index < self.request.n:
            raise NotFound(f"pool {self.id} has no worker {index}")
        async with self._seats.setdefault(index, asyncio.Lock()):
            return await self._fresh(index, make)

    @property
    def workers(self) -> tuple[Worker, ...]:
        """The workers that sit in it now."""
        return tuple(self._workers.values())

    def worker(self, index: int) -> Worker:
        """The worker in a seat. Raises `NotFound`."""
        self.check_open()
        return self._worker(index)

    async def end(self, troubles: Sequence[WorkerTrouble]) -> tuple[WorkerEnded, ...]:
        """End workers that their client gave up, all at once; how each ended."""
        self.check_open()
        chosen = [(self._worker(one.index), one.trouble) for one in troubles]
        ends = await asyncio.gather(*(worker.end(trouble) for worker, trouble in chosen))
        return tuple(_ended(worker.index, end) for (worker, _), end in zip(chosen, ends, strict=True))

    async def output(self, index: int) -> WorkerOutput:
        """What a worker has printed."""
        stdout, stderr = await self._worker(index).output()
        return WorkerOutput(index=index, stdout=_text(stdout), stderr=_text(stderr))

    async def close(self, reason: str) -> None:
        """End it and wait until nothing of its workers is left. Idempotent."""
        held = [*(worker.held for worker in self._workers.values()), *self._leaving]
        self.discard(reason)
        await asyncio.gather(*(one.end(reason) for one in held))

    def discard(self, reason: str) -> None:
        """End it. Returns at once; idempotent."""
        if self.over:
            return
        self.over = True
        for worker in self._workers.values():
            worker.discard(reason)
        if self.lease is not None:
            self.lease.leave(self)
        log.info("event=pool_ended pool=%s reason=%s replaced=%d", self.id, reason, self.replaced)
        self.on_end(self)

    def check_open(self) -> None:
        """Raise `PoolClosed` when it has ended."""
        if self.over:
            raise PoolClosed("this pool has ended", hint="it was closed, its lease ended, or its node shut down")

    def row(self) -> PoolRow:
        """The pool as listed."""
        request = self.request
        return PoolRow(
            id=self.id,
            n=request.n,
            mode=request.mode,
            template=request.template,
            env_digest=request.env_digest,
            isolation=self.isolation,
            age_s=round(time.monotonic() - self.born_s, 3),
            slots=self.slots,
            replaced=self.replaced,
            label=request.label or "",
            labels=request.labels,
            lease_id=self.lease.id if self.lease is not None else None,
            workers=tuple(_row(worker) for _, worker in sorted(self._workers.items())),
        )

    async def _start(self, index: int, generation: int) -> Worker:
        if self.request.mode == "boltz":
            return await workers.start_alone(index, generation, self.fork_solo)
        return await workers.start(index, generation, self.fork)

    async def _see_off(self, held: Held) -> None:
        await held.end("it was replaced")
        self._leaving.discard(held)

    def _worker(self, index: int) -> Worker:
        if index not in self._workers:
            raise NotFound(f"pool {self.id} has no worker {index}")
        return self._workers[index]

    async def _fresh(self, index: int, make: Make | None = None) -> Worker:
        """A new worker in a seat; what was there is ended. Joins no pool that ended meanwhile."""
        old = self._workers.pop(index, None)
        if old is not None:
            old.discard("it was replaced")
            self.replaced += 1
            self._leaving.add(old.held)
            self.nursery.start(self._see_off(old.held), name=f"replaced-{old.id}")
        self._generation += 1
        async with self._gate:
            self.check_open()
            start = make or self._start
            worker = await start(index, self._generation)
            self.on_worker(worker)
        if self.over:
            worker.discard("the pool ended")
            self.check_open()
        self._workers[index] = worker
        self.nursery.start(worker.watch(), name=f"watch-{worker.id}")
        return worker


def _row(worker: Worker) -> WorkerRow:
    box = worker.held.box
    return WorkerRow(
        index=worker.index,
        id=worker.id,
        generation=worker.generation,
        state=worker.state,
        isolation=box.isolation,
        fork_time_ms=round(box.fork_time_ms, 3),
        warm_hit=box.warm_hit,
    )


def _ended(index: int, end: End) -> WorkerEnded:
    return WorkerEnded(
        index=index,
        status=end.status,
        exit_code=end.exit_code,
        signal=end.signal,
        reason=end.reason,
        stdout=_text(end.stdout),
        stderr=_text(end.stderr),
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
