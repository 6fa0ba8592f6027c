"""A node: what the server asks for, in the words of the wire.

`Node` joins the parts that remember (templates, sessions, leases), the part that admits, and the backend that makes
sandboxes. One order holds everywhere: check the request, take a turn, fork, join the lease; and whatever fails, what
was taken before it is given back. Nothing here reads or writes HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from hotbed.errors import Draining, SandboxGone
from hotbed.node import plans, records, seeding, trace
from hotbed.node.bakes.bakes import Bakes
from hotbed.node.capacity import runnable_threads, usable_cores
from hotbed.node.egress import Egress
from hotbed.node.grading.groups import Graders
from hotbed.node.held import HeldBox
from hotbed.node.housekeeping import Housekeeping
from hotbed.node.keys.audit import AuditLog
from hotbed.node.leases import Lease, Leases, claim_of, tenant_id
from hotbed.node.ledger.entry import Entry
from hotbed.node.ledger.ledger import Ledger
from hotbed.node.ledger.usage import UsageRow
from hotbed.node.meter import Meter
from hotbed.node.nursery import Nursery
from hotbed.node.pace import Busy, Pace
from hotbed.node.policy import Policy
from hotbed.node.pools import Pools
from hotbed.node.recordings import Recorded
from hotbed.node.scheduler import Turn
from hotbed.node.sessions import Session, Sessions
from hotbed.node.snapshots import Snapshots, SnapshotSettings
from hotbed.node.stats import Stats
from hotbed.node.templates import Templates
from hotbed.node.tickets import Tickets
from hotbed.node.waits import Wait, Waits
from hotbed.runtime.base import Backend, BoxRequest, ExecOutcome, Template
from hotbed.runtime.base import ExecRequest as ExecPlan
from hotbed.wire.health import Health
from hotbed.wire.sandboxes import CreateSandbox, SandboxCreated

log = logging.getLogger(__name__)


class Node:
    """One machine's templates, sandboxes and promises."""

    def __init__(self, backend: Backend, policy: Policy, *, version: str, ledger: Ledger | None = None) -> None:
        self.backend = backend
        self.ledger = ledger
        self.policy = policy
        self.version = version
        self.id = secrets.token_hex(8)
        self.draining = False
        self.inflight = 0
        self.isolation = ""
        self.templates = Templates(backend, limit=policy.max_templates, catalog=policy.catalog)
        self.bakes = Bakes(backend, self.templates, home=policy.home, quota_bytes=policy.images_mib << 20)
        self.sessions = Sessions(self.id)
        self.leases = Leases()
        self.tickets = Tickets()
        self.nursery = Nursery()
        self.live: set[HeldBox] = set()  # every sandbox that is not gone yet
        self._idle = asyncio.Event()
        self._idle.set()
        self.audit: AuditLog | None = None  # what a server for others keeps
        self.stats, self.meter = Stats(), Meter()
        self._hold = partial(HeldBox, nursery=self.nursery, live=self.live, meter=self.meter)
        self.housekeeping = Housekeeping(
            backend, live=self.live, meter=self.meter, stats=self.stats, keep=self._keep_usage
        )
        self.waits = Waits()
        self.admission, self.pace = policy.admission(), Pace(cores=usable_cores(), runnable=runnable_threads)
        self.egress = Egress(policy.egress, backend, self.templates, note=self.note)
        self.pools = Pools(policy.pools, backend, self.templates, nursery=self.nursery, fork=self.fork)
        self.pools.egress, self.pools.name = self.egress.policy, self.egress.name
        self.bakes.policy = lambda recipe: self.egress.policy(recipe.egress, recipe.name, None)
        self.snapshots = Snapshots(SnapshotSettings(ttl_s=policy.ttl_s), backend=backend, nursery=self.nursery)
        self.graders = Graders(
            templates=self.templates,
            fork=self.fork,
            nursery=self.nursery,
            note=self.note,
            waits=self.waits,
            room=policy.max_sandboxes // 2,
            cores=usable_cores(),
        )

    async def start(self, *, warm: tuple[str, ...] = ()) -> None:
        """Start the backend and the templates to have ready. Raises `IsolationUnavailable`."""
        await self.backend.start()
        self.isolation = self.pools.isolation = str(self.backend.capabilities()["isolation"])
        self.bakes.resume()
        for name in warm:
            await self.templates.plain(name)
        self.housekeeping.begin(self.bakes.at_work)
        log.info("event=node_started node=%s isolation=%s max=%d", self.id, self.isolation, self.admission.limit)

    async def drain(self, *, deadline_s: float) -> None:
        """Take no new work; let what runs end, for so long; then end every lease and sandbox."""
        self.draining = True
        log.info("event=draining inflight=%d sessions=%d", self.inflight, len(self.sessions))
        try:
            await asyncio.wait_for(self._idle.wait(), deadline_s)
        except asyncio.TimeoutError:
            log.warning("event=drain_deadline inflight=%d", self.inflight)
        self.discard_all()

    async def close(self) -> None:
        """Leave nothing. Idempotent."""
        self.draining = True
        self.discard_all()
        await self.bakes.close()
        await self.templates.catalog.close()
        await self.nursery.wait_empty(timeout_s=5.0)
        await self.nursery.cancel_all()
        self.housekeeping.close()
        await self.backend.close()
        if self.ledger is not None:
            await asyncio.to_thread(self.ledger.close)

    def health(self) -> Health:
        """Whether it is there and how busy."""
        return Health(
            status="draining" if self.draining else "ok",
            version=self.version,
            node_id=self.id,
            sessions=len(self.sessions),
            running=self.admission.running,
            queued=self.admission.queued,
            max_inflight=self.admission.limit,
            templates=self.templates.names,
            isolation=self.isolation,
        )

    async def fork(
        self,
        template: Template,
        request: BoxRequest,
        lease: Lease | None,
        *,
        patient: bool = True,
        wait: Wait | None = None,
        birth: Busy | None = None,
    ) -> HeldBox:
        """A sandbox with its turn and its lease. Raises before it forks when there is no room.

        A tenant at its share waits for something of its own to end; what is kept (not `patient`) is refused instead.
        """
        turn = await self._turn(lease, patient=patient, birth=birth)
        try:
            self.check_open()
            if lease is not None:
                lease.check()
            if wait is not None:
                wait.enter("fork")
            box = self.egress.follow(await template.fork(request), request, template, lease)
        except BaseException:  # a cancelled fork must give its turn back too
            turn.release()
            raise
        self.stats.counts["forks"] += 1
        held = self._hold(box, turn=turn, lease=lease, template=template.spec.name)
        if lease is not None:
            try:
                lease.join(held)
            except SandboxGone:
                held.discard("lease_ended")
                raise
        return held

    async def _turn(self, lease: Lease | None, *, patient: bool, birth: Busy | None) -> Turn:
        claimant, share = claim_of(lease)
        begun = time.perf_counter()
        turn = await self.admission.acquire(claimant, share=share, patient=patient)
        if birth is not None:
            try:
                await birth.begin()
            except BaseException:  # cancelled
                turn.release()
                raise
        self.stats.queue_ms.add((time.perf_counter() - begun) * 1e3)
        return turn

    async def create_sandbox(
        self, request: CreateSandbox, lease: Lease | None, *, again: Recorded | None = None
    ) -> SandboxCreated:
        """Fork a sandbox and keep it; `again` is the one that this repeats."""
        begun = time.perf_counter()
        self.check_open()
        plans.check_isolation(self.isolation, request.min_isolation)
        request = seeding.completed(request)
        seed = plans.seed_of(request)
        name = self.sessions.new_id()
        recorded = again or Recorded(id=name, tenant=tenant_id(lease), group=request.group or "")
        egress = self.egress.policy(request.egress, request.template, lease, of=recorded, sealed=again is not None)
        box_plan = plans.box_plan(self.templates.spec(request.template), request, egress)
        template = await self.templates.plain(request.template)
        own = {"own_egress": request.egress is not None, "sealed": again is not None}
        box_plan, template = self.snapshots.begin_with(request.snapshot, template, box_plan, lease, **own)
        with self.waits.begin(lease) as wait:
            held = await self._fork_ready(template, box_plan, lease, wait)
        session = self.keep(held, template, request, seed, limits=box_plan.limits, id=name)
        made = session.created((time.perf_counter() - begun) * 1e3)
        self.note(records.of_create(request, made, digest=template.digest, at=time.time()), lease)
        return made

    async def _fork_ready(self, template: Template, request: BoxRequest, lease: Lease | None, wait: Wait) -> HeldBox:
        with self.pace.birth(claim_of(lease)[0]) as birth:
            held = await self.fork(template, request, lease, patient=False, wait=wait, birth=birth)
            try:
                await held.box.ready()
            except BaseException:  # also when cancelled
                held.discard("not_ready")
                raise
        self.stats.fork_ms.add(held.box.fork_time_ms)
        return held

    def keep(
        self, held: HeldBox, template: Template, request: CreateSandbox, seed: str, *, id: str = "", **about: Any
    ) -> Session:
        """Give a sandbox a name and a clock; `about` are fields of its session. `SandboxGone` for one that ends."""
        if held.is_ending:  # its lease ended in the instant in which it was ready, and nobody would hear of its end
            raise SandboxGone("the sandbox ended while it was being made", hint="the client is gone")
        session = Session(
            id=id or self.sessions.new_id(),
            held=held,
            template=template,
            seed=seed,
            determinism=seeding.level_of(request),
            ttl_s=request.ttl_s or self.policy.ttl_s,
            idle_ttl_s=request.idle_ttl_s or self.policy.idle_ttl_s,
            label=request.label or "",
            labels=request.labels,
            group=request.group or "",
            **about,
        )
        self.sessions.add(session)
        self.egress.name(held.box, sandbox_id=session.id)
        held.box.when_gone(held.discard)  # it may die on its own, and its session must not outlive it
        return session

    def check_open(self) -> None:
        """Refuse new work while shutting down."""
        if self.draining:
            raise Draining("this node is shutting down", hint="retry on another, or when it is back", retry_after_s=2)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Something runs that a drain waits for."""
        self.inflight += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.inflight -= 1
            if not self.inflight:
                self._idle.set()

    def count(self, plan: ExecPlan, outcome: ExecOutcome) -> None:
        """Remember how an exec went."""
        self.stats.counts[plan.kind] += 1
        self.stats.outcomes[outcome.status] += 1
        self.stats.exec_ms.add(plans.exec_ms(outcome))

    def note(self, entry: Entry, lease: Lease | None = None) -> None:
        """Keep what happened, and for whom, if this node keeps a ledger."""
        whose = tenant_id(lease)
        self.meter.count(whose, entry.kind)
        if entry.kind == "grade":
            self.stats.grade_ms.add(entry.total_ms)
        trace.noted(entry, tenant=whose)
        if self.ledger is not None:
            self.ledger.note(records.told(entry, tenant=whose, trace=trace.CURRENT.get()))

    def _keep_usage(self, rows: list[UsageRow]) -> None:
        if self.ledger is not None:
            self.ledger.keep_usage(self.id, rows)

    def discard_all(self) -> None:
        """Start ending every lease and sandbox. Returns at once."""
        for lease in tuple(self.leases):
            self.leases.end(lease)
        for pool in self.pools:
            pool.discard("shutdown")
        for held in tuple(self.live):
            held.discard("shutdown")
