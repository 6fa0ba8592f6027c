"""Groups that are graded or were: a trainer that asks again gets the same group's results, not a second grading.

A group without an id lives as long as the request that asked for it. One with an id goes on when its client hangs up,
because the client will be back: the same request with the same id follows the same group from its first line on.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from typing import Any

import msgspec

from hotbed.errors import Error, InvalidRequest
from hotbed.grading import wire_form
from hotbed.grading.seeds import judge_seed
from hotbed.grading.verdicts import GradeResult
from hotbed.node import records
from hotbed.node.grading.host import Fork, Host, Lanes, Room, TenantRoom
from hotbed.node.grading.judges import Judges
from hotbed.node.grading.members import Member
from hotbed.node.grading.pins import echoed
from hotbed.node.grading.run import CHUNK, GroupRun, Plan
from hotbed.node.leases import Lease, claim_of, lasting, tenant_id
from hotbed.node.ledger.entry import Entry
from hotbed.node.nursery import Nursery
from hotbed.node.templates import Templates
from hotbed.node.waits import Waits
from hotbed.runtime.base import Template
from hotbed.wire.checks import fresh_seed
from hotbed.wire.grading import GradeDone, GradeLine, GradeRequest

KEPT_CHECKS = 200  # of each candidate, in the ledger
BEAT_S = 10.0  # a client hears of us this often, whatever happens
REMEMBERED = 256
REMEMBERED_LINES = 1 << 14
_QUICK = 2  # so few candidates want an answer soon more than they want it cheap

log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


class Group:
    """One request's lines, as they come."""

    def __init__(self, group_id: str, digest: str) -> None:
        self.id = group_id
        self.digest = digest
        self.lines: list[GradeLine | GradeDone] = []
        self.failure: Exception | None = None
        self._changed = asyncio.Event()

    def add(self, line: GradeLine | GradeDone) -> None:
        """One more."""
        self.lines.append(line)
        self._tell()

    def fail(self, error: Exception) -> None:
        """There will be no more."""
        self.failure = error
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def ended(self) -> bool:
        """Whether all is said."""
        return self.failure is not None or (bool(self.lines) and isinstance(self.lines[-1], GradeDone))

    async def follow(self) -> AsyncIterator[GradeLine | GradeDone | None]:
        """Every line from the first on; None after a while without one. Raises what grading as a whole failed of."""
        told = 0
        while True:
            changed = self._changed
            while told < len(self.lines):
                yield self.lines[told]
                told += 1
            if self.failure is not None:
                raise self.failure
            if self.ended():
                return
            try:
                await asyncio.wait_for(changed.wait(), BEAT_S)
            except asyncio.TimeoutError:
                yield None


class Graders:
    """The groups of a node."""

    def __init__(
        self,
        *,
        templates: Templates,
        fork: Fork,
        nursery: Nursery,
        note: Callable[..., None],
        waits: Waits,
        room: int,
        cores: int,
    ) -> None:
        self._templates = templates
        self._fork = fork
        self._nursery = nursery
        self._note = note
        self._waits = waits
        self._room = Room(max(2, room))
        self._rooms: dict[str, TenantRoom] = {}
        self._judges = Judges(nursery)
        self._lanes = Lanes(sorted(os.sched_getaffinity(0)))
        self._running = 0
        self._cores = cores
        self._known: OrderedDict[tuple[str, str], Group] = OrderedDict()  # by tenant and group id
        self.counts = {"groups": 0, "graded": 0, "invalid": 0, "retried": 0}

    async def grade(
        self, request: GradeRequest, lease: Lease | None, *, judge_seed: str | None = None
    ) -> AsyncGenerator[GradeLine | GradeDone | None, None]:
        """Grade a group, or follow it if it was asked for before. Raises `InvalidSpec` before anything runs.

        `judge_seed` is what the judge drew from when the ledger's entry was made, for grading that again.
        """
        spec = wire_form.from_wire(request.spec)
        self._templates.spec(spec.template)
        digest = hashlib.sha256(_encode(request)).hexdigest()
        key = (tenant_id(lease), request.group_id)
        known = self._known.get(key) if request.group_id else None
        if known is not None and known.digest != digest and not isinstance(known.failure, Error):
            raise InvalidRequest(
                f"group {request.group_id!r} was asked for before, with other candidates or another spec",
                hint="a group_id names one request",
            )
        if known is None or known.failure is not None:
            known = Group(request.group_id or secrets.token_hex(8), digest)
            work = self._grade(known, request, spec, lease, judge_seed)
            if request.group_id:
                self._remember(key, known)
            task = self._nursery.start(work, name=f"grade-{known.id[:32]}")
        else:
            task = None
        try:
            async for line in known.follow():
                yield line
        finally:
            if task is not None and not request.group_id:
                task.cancel()

    def _remember(self, key: tuple[str, str], group: Group) -> None:
        """Keep a group; let go of the oldest that have ended where they are too many, or too much is kept of them."""
        self._known[key] = group
        self._known.move_to_end(key)
        lines = sum(len(each.lines) for each in self._known.values())
        for oldest, each in list(self._known.items()):
            if len(self._known) <= REMEMBERED and lines <= REMEMBERED_LINES:
                return
            if each.ended():
                lines -= len(each.lines)
                del self._known[oldest]

    def _room_of(self, lease: Lease | None) -> Room:
        """Where a group's sandboxes find room: a tenant's in its own part."""
        claimant, share = claim_of(lease)
        if share is None:
            return self._room
        room = self._rooms.get(claimant)
        if room is None or room.share is not share:
            room = self._rooms[claimant] = TenantRoom(share, self._room)
        return room

    def _concurrency(self, request: GradeRequest, room: Room) -> int:
        """How many candidates at once: more than there is room for would only keep other groups from their turn."""
        return min(request.concurrency or CHUNK * max(2, self._cores), room.size)

    async def _grade(
        self, group: Group, request: GradeRequest, spec: wire_form.Spec, asked_by: Lease | None, seed: str | None
    ) -> None:
        lease = lasting(asked_by) if request.group_id else asked_by
        begun, room = time.perf_counter(), self._room_of(lease)
        self._running += 1
        try:
            template = await self._templates.warm(spec.template)
            plan = plan_of(request, spec, concurrency=self._concurrency(request, room), judge=seed)
            recorder = Recorder(group, request, template, plan.judge_seed, partial(self._note, lease=lease))
            alone = self._running == 1 and len(plan.members) <= _QUICK
            host = Host(fork=self._fork, template=template, lease=lease, use_spares=alone)
            run = GroupRun(plan, host, room, self._lanes, self._judges, recorder.emit)
            with self._waits.begin(asked_by, "grade"):
                statuses = await run.run()
        except asyncio.CancelledError:
            group.fail(Error("grading was cancelled"))
            raise
        except Exception as error:  # the group's boundary: whoever follows it is told
            group.fail(error)
            if not isinstance(error, Error):
                raise
            return
        finally:
            self._running -= 1
        took_ms = (time.perf_counter() - begun) * 1e3
        group.add(self._done(group, statuses, graded=len(plan.members), retried=run.retried, took_ms=took_ms))

    def _done(self, group: Group, statuses: Counter[str], *, graded: int, retried: int, took_ms: float) -> GradeDone:
        """The last line of a group, which is counted with it."""
        invalid = statuses["infra_error"] + statuses["spec_error"]
        for name, count in (("groups", 1), ("graded", graded), ("invalid", invalid), ("retried", retried)):
            self.counts[name] += count
        return GradeDone(
            group_id=group.id,
            graded=graded,
            invalid=invalid,
            retried=retried,
            total_ms=round(took_ms, 3),
            statuses=dict(statuses),
        )


class Recorder:
    """Turns each result into a line of the group and a line of the ledger."""

    def __init__(
        self, group: Group, request: GradeRequest, template: Template, seed: str, note: Callable[[Entry], None]
    ) -> None:
        self._group = group
        self._request = request
        self._template = template
        self._judge_seed = seed
        self._note = note

    async def emit(self, member: Member, result: GradeResult) -> None:
        """One candidate is done."""
        result = echoed(member, result)
        grade_id = f"grade_{secrets.token_hex(8)}"
        self._note(self._entry(grade_id, member, result))
        self._group.add(GradeLine(index=member.index, id=grade_id, result=result.to_wire()))

    def _entry(self, grade_id: str, member: Member, result: GradeResult) -> Entry:
        asked = {"spec": self._request.spec, "code": member.candidate, "seed": member.seed}
        return records.of_grade(
            result,
            self._details(result),
            id=grade_id,
            at=time.time(),
            template=self._template.spec.name,
            template_digest=self._template.digest,
            request=_encode(asked),
            seed=member.seed,
            determinism=member.determinism,
            group_id=self._group.id,
            label=self._request.label or "",
        )

    def _details(self, result: GradeResult) -> dict[str, Any]:
        checks = [[check.name, check.outcome, check.message[:200]] for check in result.checks[:KEPT_CHECKS]]
        return {
            "passed": result.passed,
            "total": result.total,
            "trust": result.trust,
            "reason": result.reason[:2000],
            "suspected_tamper": result.suspected_tamper,
            "checks": checks,
            "judge_seed": self._judge_seed,
            "pinned": list(result.pinned),
        }


def plan_of(request: GradeRequest, spec: wire_form.Spec, *, concurrency: int, judge: str | None = None) -> Plan:
    """What grading a request takes."""
    given = request.seeds or (None,) * len(request.codes)
    members = tuple(
        Member(
            index=index,
            candidate=code,
            seed=(seed or fresh_seed()).lower(),
            determinism=request.determinism or ("rng" if seed is not None else "none"),
        )
        for index, (code, seed) in enumerate(zip(request.codes, given, strict=True))
    )
    common = next((seed for seed in given if seed is not None), None) or request.group_id or None
    return Plan(
        spec=spec,
        members=members,
        judge_seed=judge or judge_seed(common),
        concurrency=concurrency,
        deadline_s=request.deadline_s,
    )
