"""The snapshots of this node: whose they are, how much they may hold, and putting them back into pools.

There are two kinds: of a pool's environment, with its memory, and of a sandbox, its files. A snapshot belongs to the
lease of what it was taken of, or to nobody, and is freed with it, by its owner, with its template's process, or when
its time is up. It holds memory of the node, so there is a cap on all of them together; at the cap nothing old is thrown
away: the new one is refused.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hotbed.errors import AtCapacity, Error, InvalidRequest, NotFound, SnapshotUnsupported
from hotbed.node.kept import Kept, KeptLayer, Snapshot
from hotbed.node.leases import Lease, tenant_id
from hotbed.node.nursery import Nursery
from hotbed.node.pool import Pool
from hotbed.node.remembered import Remembered
from hotbed.node.tenants import Tenant
from hotbed.pools.workers import Worker
from hotbed.runtime import snapshots as runtime
from hotbed.runtime.base import BoxRequest, Template
from hotbed.runtime.programs import RunningProgram
from hotbed.runtime.sandboxes import ForkBox
from hotbed.runtime.snapshots import LiveFork
from hotbed.wire.snapshots import ForkWorker, RestoreWorkers, TakeSnapshot, WorkersRestored

REMEMBERED = 10_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSettings:
    """How much they may hold."""

    count: int = 4096
    size: int = 8 << 30
    ttl_s: float = 24 * 3600.0


class Snapshots:
    """Every live snapshot."""

    def __init__(self, settings: SnapshotSettings, *, backend: object, nursery: Nursery) -> None:
        self._settings = settings
        self._backend = backend
        self._nursery = nursery
        self._kept: dict[str, Snapshot] = {}
        self._freed = Remembered[str](REMEMBERED)  # whose each was

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(tuple(self._kept.values()))

    @property
    def size(self) -> int:
        """Bytes that all of them hold."""
        return sum(kept.size for kept in self._kept.values())

    def get(self, snapshot_id: str, *, seen_by: Lease | None = None) -> Snapshot:
        """A live snapshot. Raises `NotFound`, also of another tenant's when it is asked for under a tenant's lease."""
        kept = self._kept.get(snapshot_id)
        if kept is None or not kept.is_alive() or not _sees(seen_by, kept):
            raise _unknown(snapshot_id)
        return kept

    def check_owner(self, snapshot_id: str, tenant: Tenant | None) -> None:
        """Raise `NotFound` for a snapshot that never was, not for one that was freed.

        For a tenant, somebody else's never was.
        """
        kept = self._kept.get(snapshot_id)
        owner = tenant_id(kept.lease) if kept is not None else self._freed.get(snapshot_id)
        if owner is None or (tenant is not None and owner != tenant.id):
            raise _unknown(snapshot_id)

    def begin_with(
        self,
        snapshot_id: str | None,
        template: Template,
        plan: BoxRequest,
        lease: Lease | None,
        *,
        own_egress: bool,
        sealed: bool,
    ) -> tuple[BoxRequest, Template]:
        """A plan that starts with a snapshot, if there is one, and what to fork. Raises `NotFound`.

        It has the network policy that the sandbox had, unless it brings its own; `sealed`, it hears nothing that was
        not recorded.
        """
        if snapshot_id is None:
            return plan, template
        kept, name = self.get(snapshot_id, seen_by=lease), template.spec.name
        if not isinstance(kept, KeptLayer) or kept.template.spec.name != name:
            raise NotFound(f"no snapshot {snapshot_id[:64]!r} of a sandbox of template {name[:64]!r}")
        egress = plan.egress if own_egress else kept.egress
        if egress is not None and egress.recording:
            egress = replace(egress, sealed=egress.sealed or sealed)
        return replace(plan, layer=kept.layer, limits=plan.limits or kept.limits, egress=egress), kept.template

    def check_room(self) -> None:
        """Raise `AtCapacity` before one more is taken."""
        layers = getattr(self._backend, "layers", None)
        size = max(self.size, layers.size if layers is not None else 0)
        if len(self._kept) >= self._settings.count or size >= self._settings.size:
            raise AtCapacity(
                f"{len(self._kept)} snapshots hold {size >> 20} MiB, which is all there may be",
                hint="free some: snapshot.free(), or `with pool.snapshot(i) as snapshot`; end forks that share one",
            )

    def keep(self, kept: Snapshot) -> None:
        """Take one in, under its lease, for its time. Raises when the lease has just ended; it is freed then."""
        self._kept[kept.id] = kept
        if kept.lease is not None:
            try:
                kept.lease.join(kept)
            except Error:
                kept.discard("its lease ended")
                raise
        asyncio.get_running_loop().call_later(self._settings.ttl_s, kept.discard, "ttl")
        log.info("event=snapshot_taken snapshot=%s size=%d", kept.id, kept.size)

    async def take(self, pool: Pool, request: TakeSnapshot) -> Kept:
        """Take one of a worker."""
        livefork = self._livefork()
        self.check_room()
        begun = time.perf_counter()
        box, program = _environment(pool, request.worker)
        taken = await livefork.snapshot(box, program, skip=request.skip, verify=request.verify)
        took_ms = round((time.perf_counter() - begun) * 1e3, 3)
        kept = Kept(taken=taken, livefork=livefork, pool=pool, lease=pool.lease, owner=self, take_time_ms=took_ms)
        self.keep(kept)
        return kept

    async def restore(self, pool: Pool, request: RestoreWorkers) -> WorkersRestored:
        """Replace workers of a pool, all at once; one that fails fails alone."""
        _check_mode(pool)
        kept = self.get(request.snapshot, seen_by=pool.lease)
        if not isinstance(kept, Kept):
            raise SnapshotUnsupported(
                "that is a snapshot of a sandbox", hint="Sandbox.from_snapshot starts one with it"
            )
        if kept.pool.template.spec != pool.template.spec:
            raise SnapshotUnsupported(
                "that is a snapshot of another template",
                hint="pools share one if env_dir, template and limits are equal",
            )
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

    def drop(self, kept: Snapshot, reason: str) -> None:
        """Free one. Returns at once; idempotent."""
        if self._kept.pop(kept.id, None) is None:
            return
        self._freed.add(kept.id, tenant_id(kept.lease))
        if kept.lease is not None:
            kept.lease.leave(kept)
        log.info("event=snapshot_freed snapshot=%s reason=%s", kept.id, reason)
        self._nursery.start(kept.free(), name=f"free-{kept.id}")

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


def _sees(lease: Lease | None, kept: Snapshot) -> bool:
    if lease is None or lease.tenant is None:
        return True
    return kept.lease is not None and kept.lease.tenant is lease.tenant


def _check_mode(pool: Pool) -> None:
    if pool.request.mode == "boltz":
        raise SnapshotUnsupported(
            "a boltz pool's environments are forks of one state already", hint='use RLPool(..., mode="default")'
        )


def _environment(pool: Pool, index: int) -> tuple[ForkBox, RunningProgram]:
    _check_mode(pool)
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


def _unknown(snapshot_id: str) -> NotFound:
    return NotFound(f"no snapshot {snapshot_id[:64]!r}", hint="it was freed, or its template has ended")
