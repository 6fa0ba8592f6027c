"""Sealed judging: candidates answer calls in their sandboxes, one judge forms their verdicts in another.

The node starts everything and connects each candidate to the judge by a socketpair; after that no byte between them
passes through the node. It waits for verdicts, answers the judge's questions about starved sandboxes, and ends each
candidate's sandbox with its verdict. Whatever of this fails is our failure: the candidates it concerns have no reward.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hotbed.errors import Error, InvalidSpec, SandboxGone
from hotbed.grading import protocol
from hotbed.grading.protocol import CandidateCode, Sealed
from hotbed.grading.verdicts import GradeResult, infra_failure, settle
from hotbed.guest.frames import Header
from hotbed.node.grading.host import Host, Running
from hotbed.node.grading.judge import JudgeChannel, take_fd
from hotbed.node.grading.judges import Judge, Judges
from hotbed.node.grading.members import Member, OnResult, about_box, candidate_failure, lost_sandbox
from hotbed.node.grading.pins import Pins
from hotbed.runtime.base import ProgramEnd

_SEND_S = 30.0
_END_S = 0.25  # how long the news of a dead process may take after the judge has noticed


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a judge is told besides the spec and the candidates, and the room that its lease has."""

    judge_seed: str
    cpu: int | None = None
    room: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A candidate that is to be judged: its code, and its program, which may still be on its way."""

    member: Member
    code: CandidateCode
    running: Running

    def end(self) -> None:
        """Let go of it. Idempotent."""
        self.running.end()


async def judge_sealed(
    host: Host, judges: Judges, spec: Sealed, members: Sequence[Member], *, job: Job, on_result: OnResult
) -> None:
    """Judge a few siblings with one judge. Each gets exactly one result."""
    loop = asyncio.get_running_loop()
    judging = loop.create_task(judges.take(host))
    seating = [loop.create_task(_seat(host, spec, member)) for member in members]
    starting: list[asyncio.Task[Any]] = [judging, *seating]
    try:
        await asyncio.wait(starting)
        seats = await _seated(members, seating, on_result)
        failure = judging.exception()
        if isinstance(failure, (Error, OSError)):
            await _fail(seats, f"no judge could be started: {failure}", on_result)
        elif failure is not None:
            raise failure
        elif seats:
            judge = judging.result()
            if await Session(spec, seats, on_result).run(judge.channel, job):
                judges.give_back(judge, host, room=job.room)
                starting.remove(judging)
    finally:
        await _end(starting)


async def _end(starting: Sequence[asyncio.Task[Any]]) -> None:
    """End everything that was started, also what is only now being started."""
    for task in starting:
        task.cancel()
    for made in await asyncio.gather(*starting, return_exceptions=True):
        if isinstance(made, (Judge, Seat)):
            made.end()


async def _seat(host: Host, spec: Sealed, member: Member) -> Seat:
    code = protocol.candidate_of(member.candidate, spec)
    running = await host.start("candidate", spec.limits, seed=member.seed, determinism=member.determinism)
    return Seat(member=member, code=code, running=running)


async def _seated(members: Sequence[Member], seating: Sequence[asyncio.Task[Seat]], on_result: OnResult) -> list[Seat]:
    """Who is to be judged; the others have their results."""
    seats = []
    for member, task in zip(members, seating, strict=True):
        failure = task.exception()
        if failure is None:
            seats.append(task.result())
        elif isinstance(failure, InvalidSpec):
            await on_result(member.index, candidate_failure(failure.message))
        elif isinstance(failure, (Error, OSError)):
            await on_result(member.index, infra_failure(f"no sandbox for the candidate: {failure}"))
        else:
            raise failure
    return seats


async def _fail(seats: Sequence[Seat], reason: str, on_result: OnResult) -> None:
    for seat in seats:
        await on_result(seat.member.index, infra_failure(reason))


class Session:
    """One job of one judge."""

    def __init__(self, spec: Sealed, seats: list[Seat], on_result: OnResult) -> None:
        self._spec = spec
        self._seats = seats
        self._on_result = on_result
        self._begun = time.monotonic()
        self._waiting = set(range(len(seats)))

    async def run(self, judge: JudgeChannel, job: Job) -> bool:
        """Send the job and take what comes until every candidate has its result. Whether the judge gave them all."""
        codes = [seat.code for seat in self._seats]
        header, body = protocol.job_frame("job", self._spec, codes, job.judge_seed, cpu=job.cpu)
        fds = [take_fd(seat.running.channel) for seat in self._seats]
        await judge.send(header, body, fds, timeout_s=_SEND_S)
        settling: list[asyncio.Task[None]] = []
        try:
            await self._collect(judge, self._begun + protocol.deadline_s(self._spec, len(self._seats)), settling)
            await asyncio.gather(*settling)
        finally:
            for task in settling:
                task.cancel()
        left = [self._seats[index] for index in sorted(self._waiting)]
        await _fail(left, f"the judge gave no verdict: {judge.ended}", self._on_result)
        return not left

    async def _collect(self, judge: JudgeChannel, deadline: float, settling: list[asyncio.Task[None]]) -> None:
        """Take verdicts until all are there; each is completed beside the others, for that may take a moment."""
        while self._waiting:
            frame = await judge.receive(deadline - time.monotonic())
            if frame is None:
                return
            try:
                verdict = await self._take(judge, frame)
            except Error as error:
                judge.ended = str(error)
                return
            if verdict is not None:
                settling.append(asyncio.get_running_loop().create_task(self._settle(*verdict)))

    async def _take(self, judge: JudgeChannel, frame: Header) -> tuple[Seat, GradeResult, bool] | None:
        if frame.get("op") == "usage":
            waited = self._seats[protocol.usage_index(frame, len(self._seats))].running.held.box.waited_s()
            await judge.send(protocol.usage_frame(frame, waited), timeout_s=_SEND_S)
            return None
        if frame.get("op") == "done":
            return None
        index, result = protocol.read_verdict(frame, self._spec, len(self._seats))
        if index not in self._waiting:
            return None
        self._waiting.discard(index)
        return self._seats[index], result, frame.get("gone") is True

    async def _settle(self, seat: Seat, result: GradeResult, gone: bool) -> None:
        """Complete a verdict with how the candidate's process ended, and end its sandbox."""
        try:
            end = await _end_of(seat, result, gone)
        except Error as error:
            await self._on_result(seat.member.index, lost_sandbox(str(error)))
            return
        if end is not None:
            result = settle(result, end.status, signal=end.signal)
        pins, why_not = await _pins_of(seat)
        seat.running.held.discard("graded")
        total_ms = round((time.monotonic() - self._begun) * 1e3, 3)
        result = pins.on(result)
        if result.seed_ack == "no-ack":
            result = pins.on(infra_failure(f"what the candidate drew could not be pinned to its seed: {why_not}"))
        await self._on_result(seat.member.index, about_box(result, seat.running.held.box, end=end, total_ms=total_ms))


async def _end_of(seat: Seat, result: GradeResult, gone: bool) -> ProgramEnd | None:
    """How the candidate's program ended, where that may say more than the judge could see. `gone`: it saw it end.

    Raises when not the program but its sandbox has ended: then the judge saw our trouble, or thinks so.
    """
    if result.status not in ("candidate_error", "failed", "timeout"):
        return None
    running = seat.running
    if running.held.box.ran_out_of_memory():
        return ProgramEnd(status="oom", exit_code=None, signal=9)
    if running.alone and not gone:
        alone: Any = running.program
        stdout, stderr = await alone.output()
        return ProgramEnd(status="ok", exit_code=None, stdout=stdout, stderr=stderr)
    wait_s = _END_S if result.status == "candidate_error" else 0.001
    try:
        end = await asyncio.wait_for(running.program.wait(), wait_s)
    except asyncio.TimeoutError:
        return None
    return end_of_alone(end) if running.alone else end


def end_of_alone(end: ProgramEnd) -> ProgramEnd:
    """How a candidate ended that was its sandbox's pid 1.

    It can hardly kill itself: a SIGKILL without a reason came from outside. And it has no signals, so it ends with the
    number of the one that says its CPU time is up. Raises `SandboxGone`.
    """
    if end.status == "signal" and end.signal == signal.SIGKILL:
        raise SandboxGone("it was killed from outside")
    if end.exit_code == signal.SIGPROF:
        return replace(end, status="signal", exit_code=None, signal=int(signal.SIGPROF))
    return end


async def _pins_of(seat: Seat) -> tuple[Pins, str]:
    """What held of its seed, and why nothing did."""
    pins = Pins(seat.member)
    if seat.member.determinism != "none":
        try:
            pins.add(*await seat.running.program.pins())
        except Error as error:
            return pins, error.message
    return pins, "its check did not arrive"
