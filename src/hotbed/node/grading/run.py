"""Grading a group of candidates: in chunks, again where we failed, and never longer than the group's deadline.

Siblings are judged a chunk at a time, each chunk by one judge. A candidate whose grading failed on our side is graded
again, it alone; what fails on every attempt has no reward. When only a few stragglers are left and they take many times
longer than the others did, they are graded a second time beside the first, and whichever verdict comes first counts:
a stalled sandbox must not hold 512 GPUs. Every candidate gets exactly one result.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hotbed.grading import protocol
from hotbed.grading.programs import CommandReward, StdioReward
from hotbed.grading.verdicts import GradeResult, infra_failure
from hotbed.grading.wire_form import Spec
from hotbed.node.grading.host import Host, Lanes, Room
from hotbed.node.grading.judges import Judges
from hotbed.node.grading.members import Member, candidate_failure, is_lost
from hotbed.node.grading.outputs import judge_outputs
from hotbed.node.grading.repositories import judge_repository
from hotbed.node.grading.sealed import Job, judge_sealed

CHUNK = 8
ATTEMPTS = 3
_BACKOFF_S = 0.25
_TIDY_S = 0.25
_LOOK_S = 1.0  # between two looks for stragglers
_HEDGE_FLOOR_S = 15.0
_HEDGE_FACTOR = 5.0
_HEDGE_SHARE = 10  # at most a tenth of a group, and at least one, are stragglers

Emit = Callable[[Member, GradeResult], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How one group is to be graded."""

    spec: Spec
    members: tuple[Member, ...]
    judge_seed: str
    concurrency: int
    deadline_s: float | None = None


class Later:
    """A task that begins after a while, unless it has been ended by then."""

    def __init__(self, delay_s: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task: asyncio.Task[None] | None = None
        self._work = work
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work())

    def begun(self) -> bool:
        """Whether it has begun."""
        return self._task is not None

    async def end(self) -> None:
        """Cancel it and wait for its end."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class GroupRun:
    """One group from its first sandbox to its last verdict."""

    def __init__(self, plan: Plan, host: Host, room: Room, lanes: Lanes, judges: Judges, emit: Emit) -> None:
        self._plan = plan
        self._host = host
        self._room = room
        self._lanes = lanes
        self._judges = judges
        self._emit = emit
        self._results: dict[int, GradeResult] = {}
        self._begun: dict[int, float] = {}
        self._took: list[float] = []
        self._lost: Counter[int] = Counter()
        self._attempt = 0
        self._settled: asyncio.Future[None] | None = None
        self.retried = 0

    async def run(self) -> Counter[str]:
        """Grade everyone; how many results have which status. Leaves no sandbox behind."""
        try:
            await asyncio.wait_for(self._rounds(), self._plan.deadline_s)
        except asyncio.TimeoutError:
            reason = f"the group's deadline of {self._plan.deadline_s:g} s passed before there was a verdict"
            for member in self._open(self._plan.members):
                await self._finish(member, infra_failure(reason))
        await self._host.wait_ended()
        return Counter(result.status for result in self._results.values())

    async def _rounds(self) -> None:
        for self._attempt in range(1, ATTEMPTS + 1):
            members = self._open(self._plan.members)
            if not members:
                return
            if self._attempt > 1:
                self.retried += len(members)
                await asyncio.sleep(_BACKOFF_S * self._attempt)
            await self._round(members)

    def _open(self, members: Iterable[Member]) -> list[Member]:
        return [member for member in members if member.index not in self._results]

    async def _round(self, members: list[Member]) -> None:
        """Grade these once. Ends as soon as each has a result or its attempt has ended."""
        loop = asyncio.get_running_loop()
        settled = self._settled = loop.create_future()
        gate = asyncio.Semaphore(max(1, self._plan.concurrency // self._chunk_size()))
        work = asyncio.gather(*(self._chunk(chunk, gate) for chunk in self._chunks(members)))
        hedging = Later(_LOOK_S, lambda: self._hedge(members))
        try:
            waiting: set[asyncio.Future[Any]] = {work, settled}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if settled.done() and not hedging.begun():
                await asyncio.wait({work}, timeout=_TIDY_S)  # there are judges to be given back
            if work.done():
                work.result()
        finally:
            work.cancel()
            await asyncio.gather(work, hedging.end(), return_exceptions=True)

    def _chunk_size(self) -> int:
        """Siblings that share a judge. Programs are run one by one: there is no judge to share."""
        if isinstance(self._plan.spec, (StdioReward, CommandReward)):
            return 1
        return max(1, min(CHUNK, self._plan.concurrency, self._room.size - 1))

    def _chunks(self, members: Sequence[Member]) -> list[Sequence[Member]]:
        size = self._chunk_size()
        return [members[start : start + size] for start in range(0, len(members), size)]

    async def _chunk(self, members: Sequence[Member], gate: asyncio.Semaphore) -> None:
        async with gate:
            await self._judge(members, self._take)

    async def _judge(self, members: Sequence[Member], take: Emit) -> None:
        spec = self._plan.spec
        judges = 0 if isinstance(spec, CommandReward) or (isinstance(spec, StdioReward) and not spec.checker) else 1
        async with self._room.taken(len(members) + judges):
            now = time.monotonic()
            self._begun.update({member.index: now for member in members if member.index not in self._begun})
            if isinstance(spec, StdioReward):
                await take(members[0], await judge_outputs(self._host, spec, members[0]))
            elif isinstance(spec, CommandReward):
                await take(members[0], await judge_repository(self._host, spec, members[0]))
            else:
                await self._judge_sealed(spec, members, take)

    async def _judge_sealed(self, spec: protocol.Sealed, members: Sequence[Member], take: Emit) -> None:
        by_index = {member.index: member for member in members}

        async def on_result(index: int, result: GradeResult) -> None:
            await take(by_index[index], result)

        with self._lanes.taken(len(members)) as cpu:
            config = {} if cpu is None else protocol.program_config(0, [cpu])
            host = replace(self._host, program_config=config)
            job = Job(judge_seed=self._plan.judge_seed, cpu=cpu, room=self._room.size)
            await judge_sealed(host, self._judges, spec, members, job=job, on_result=on_result)

    async def _take(self, member: Member, result: GradeResult) -> None:
        """A result: final, unless it is our failure and there are attempts left."""
        if member.index in self._results:
            return
        if result.status == "infra_error":
            self._lost[member.index] += is_lost(result)
            if self._lost[member.index] == ATTEMPTS:
                result = candidate_failure(f"its sandbox ended while it ran, {ATTEMPTS} times of {ATTEMPTS}")
            elif self._attempt < ATTEMPTS:
                return
        self._took.append(time.monotonic() - self._begun[member.index])
        await self._finish(member, result)

    async def _take_hedge(self, member: Member, result: GradeResult) -> None:
        """The result of a second grading beside the first, which still runs: only a verdict counts."""
        if result.status != "infra_error":
            await self._take(member, result)

    async def _finish(self, member: Member, result: GradeResult) -> None:
        self._results[member.index] = result
        await self._emit(member, result)
        if len(self._results) == len(self._plan.members) and self._settled is not None and not self._settled.done():
            self._settled.set_result(None)

    async def _hedge(self, members: Sequence[Member]) -> None:
        """Grade stragglers a second time, once."""
        while True:
            left = self._open(members)
            if is_straggling([self._begun.get(member.index) for member in left], self._took, len(members)):
                self.retried += len(left)
                for chunk in self._chunks(left):
                    await self._judge(chunk, self._take_hedge)
                return
            await asyncio.sleep(_LOOK_S)


def is_straggling(begun: Sequence[float | None], took: Sequence[float], total: int) -> bool:
    """Whether those that are left are few, have all begun, and take many times longer than the others did."""
    if not begun or not took or len(begun) > max(1, total // _HEDGE_SHARE):
        return False
    typical = sorted(took)[len(took) // 2]
    patience = max(_HEDGE_FLOOR_S, _HEDGE_FACTOR * typical)
    now = time.monotonic()
    return all(since is not None and now - since > patience for since in begun)
