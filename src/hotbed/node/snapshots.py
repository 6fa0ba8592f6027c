"""The snapshots of this node: whose they are, how much they may hold, and putting them back into pools.

A snapshot belongs to the lease of the pool it was taken in, or to nobody, and is freed with it, by its owner, with its
template's process, or when its time is up. It holds memory of the node, so there is a cap on all of them together;
at the cap nothing old is thrown away: the new one is refused.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hotbed.errors import AtCapacity, Error, InvalidRequest, NotFound, SnapshotUnsupported
from hotbed.node.leases import Lease
from hotbed.node.nursery import Nursery
from hotbed.node.pool import Pool
from hotbed.pools.workers import Worker
from hotbed.runtime import snapshots as runtime
from hotbed.runtime.programs import RunningProgram
from hotbed.runtime.sandboxes import ForkBox
from hotbed.runtime.snapshots import LiveFork
from hotbed.wire.snapshots import ForkWorker, RestoreWorkers, SnapshotRow, TakeSnapshot, WorkersRestored

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSettings:
    """How much they may hold."""

    count: int = 4096
    size: int = 8 << 30
    ttl_s: float = 24 * 3600.0


@dataclass(slots=True, kw_only=True, eq=False)
class Kept:
    """A snapshot and whose it is. A member of its lease."""

    taken: runtime.Snapshot
    pool: Pool
    lease: Lease | None
    owner: Snapshots
    take_time_ms: float
    id: str = field(default_factory=lambda: f"sn_{secrets.token_hex(12)}")
    born_s: float = field(default_factory=time.monotonic)

    def discard(self, reason: str) -> None:
        """Free it. Returns at once; idempotent."""
        self.owner.drop(self, reason)

    def row(self) -> SnapshotRow:
        """The snapshot as listed."""
        return SnapshotRow(
            id=self.id,
            pool=self.pool.id,
            template=self.pool.template.spec.name,
            size=self.taken.size,
            layer_size=self.taken.layer_bytes,
            age_s=round(time.monotonic() - self.born_s, 3),
            take_time_ms=self.take_time_ms,
            skipped=self.taken.skipped,
            lease_id=self.lease.id if self.lease is not None else None,
        )


class Snapshots:
    """Every live snapshot."""

    def __init__(self, settings: SnapshotSettings, *, backend: object, nursery: Nursery) -> None:
        self._settings = settings
        self._backend = backend
        self._nursery = nursery
        self._kept: dict[str, Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Kept]:
        return iter(tuple(self._kept.values()))

    @property
    def size(self) -> int:
        """Bytes that all of them hold."""
        return sum(kept.taken.size for kept in self._kept.values())

    def get(self, snapshot_id: str) -> Kept:
        """A live snapshot. Raises `NotFound`."""
        kept = self._kept.get(snapshot_id)
        if kept is None or not self._livefork().is_alive(kept.taken):
            raise NotFound(f"no snapshot {snapshot_id[:64]!r}", hint="it was freed, or its template has ended")
        return kept

    async def take(self, pool: Pool, request: TakeSnapshot) -> Kept:
        """Take one of a worker."""
        livefork = self._livefork()
        if len(self._kept) >= self._settings.count or self.size >= self._settings.size:
            raise AtCapacity(
                f"{len(self._kept)} snapshots hold {self.size >> 20} MiB, which is all there may be",
                hint="free some: snapshot.free(), or `with pool.snapshot(i) as snapshot`",
            )
        begun = time.perf_counter()
        box, program = _environment(pool, request.worker)
        taken = await livefork.snapshot(box, program, skip=request.skip, verify=request.verify)
        took_ms = round((time.perf_counter() - begun) * 1e3, 3)
        kept = Kept(taken=taken, pool=pool, lease=pool.lease, owner=self, take_time_ms=took_ms)
        self._kept[kept.id] = kept
        if pool.lease is not None:
            try:
                pool.lease.join(kept)
            except Error:
                kept.discard("its lease ended")
                raise
        asyncio.get_running_loop().call_later(self._settings.ttl_s, kept.discard, "ttl")
        log.info("event=snapshot_taken snapshot=%s pool=%s size=%d", kept.id, pool.id, taken.size)
        return kept

    async def restore(self, pool: Pool, request: RestoreWorkers) -> WorkersRestored:
        """Replace workers of a pool, all at once; one that fails fails alone."""
        kept = self.get(request.snapshot)
        return await self._restore(pool, kept, request.workers, verify=request.verify)

    async def fork(self, pool: Pool, request: ForkWorker) -> WorkersRestored:
        """Replace workers by copies of another one, by a snapshot that is freed again."""
        kept = await self.take(pool, TakeSnapshot(worker=request.worker, skip=request.skip, verify=request.verify))
        try:
            return await self._restore(pool, kept, request.targets, verify=request.verify)
        finally:
            kept.discard("forked")

    async def _restore(self, pool: Pool, kept: Kept, workers: Sequence[int], *, verify: bool) -> WorkersRestored:
        begun = time.perf_counter()
        make = _Remake(self._livefork(), kept.taken, pool, verify=verify)
        outcomes = await asyncio.gather(*(pool.seat(index, make) for index in workers), return_exceptions=True)
        failed = {str(i): str(outcome) for i, outcome in zip(workers, outcomes, strict=True) if _is_failure(outcome)}
        return WorkersRestored(
            workers=tuple(index for index in workers if str(index) not in failed),
            failed=failed,
            skipped=kept.taken.skipped,
            time_ms=round((time.perf_counter() - begun) * 1e3, 3),
        )

    def drop(self, kept: Kept, reason: str) -> None:
        """Free one. Returns at once; idempotent."""
        if self._kept.pop(kept.id, None) is None:
            return
        if kept.lease is not None:
            kept.lease.leave(kept)
        log.info("event=snapshot_freed snapshot=%s reason=%s", kept.id, reason)
        self._nursery.start(self._livefork().release(kept.taken), name=f"free-{kept.id}")

    def _livefork(self) -> LiveFork:
        livefork = getattr(self._backend, "livefork", None)
        if not isinstance(livefork, LiveFork):
            raise SnapshotUnsupported("this node's isolation cannot copy running environments")
        return livefork


def _is_failure(outcome: object) -> bool:
    """Whether a worker could not be replaced. Anything that is not its own trouble is raised."""
    if isinstance(outcome, BaseException) and not isinstance(outcome, Error):
        raise outcome
    return isinstance(outcome, Error)


def _environment(pool: Pool, index: int) -> tuple[ForkBox, RunningProgram]:
    if pool.request.mode == "boltz":
        raise SnapshotUnsupported(
            "a boltz pool's environments are forks of one state already", hint='use RLPool(..., mode="default")'
        )
    worker = pool.worker(index)
    box, program = worker.held.box, worker.program
    if not worker.is_alive:
        raise InvalidRequest(f"worker {index} has ended", hint="reset it first")
    if not isinstance(box, ForkBox) or not isinstance(program, RunningProgram):
        raise SnapshotUnsupported("this node's isolation cannot copy running environments")
    return box, program


class _Remake:
    """Makes a worker of a snapshot."""

    def __init__(self, livefork: LiveFork, taken: runtime.Snapshot, pool: Pool, *, verify: bool) -> None:
        self._livefork = livefork
        self._taken = taken
        self._pool = pool
        self._verify = verify

    async def __call__(self, index: int, generation: int) -> Worker:
        held = await self._pool.fork_vessel()
        try:
            box = held.box
            if not isinstance(box, ForkBox):
                raise SnapshotUnsupported("this node's isolation cannot copy running environments")
            vessel = await self._livefork.restore(self._taken, box, verify=self._verify)
        except BaseException:
            held.discard("it could not be restored")
            raise
        return Worker(index, generation, held, vessel.lane, vessel.program)
