"""Sealed judging: candidates answer calls in their sandboxes, one judge forms their verdicts in another.

The node starts everything and connects each candidate to the judge by a socketpair; after that no byte between them
passes through the node. It waits for verdicts, answers the judge's questions about starved sandboxes, and ends each
candidate's sandbox with its verdict. Whatever of this fails is our failure: the candidates it concerns have no reward.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from hotbed.errors import Error, InvalidSpec
from hotbed.grading import protocol
from hotbed.grading.protocol import CandidateCode, Sealed
from hotbed.grading.verdicts import GradeResult, infra_failure, settle
from hotbed.guest.frames import Header
from hotbed.node.grading.host import Host
from hotbed.node.grading.judge import JudgeChannel, take_fd
from hotbed.node.grading.members import Member, OnResult, about_box, candidate_failure, lost_sandbox
from hotbed.node.held import HeldBox
from hotbed.runtime.base import Program, ProgramEnd

_SEND_S = 30.0
_END_S = 0.25  # how long the news of a dead process may take after the judge has noticed


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A candidate that is ready to be judged: its sandbox, its program, the judge's end of its channel."""

    member: Member
    code: CandidateCode
    held: HeldBox
    program: Program
    channel: socket.socket


async def judge_sealed(
    host: Host, spec: Sealed, members: Sequence[Member], *, judge_seed: str, on_result: OnResult
) -> None:
    """Judge a few siblings with one judge. Each gets exactly one result."""
    async with AsyncExitStack() as stack:
        seats, judge = await asyncio.gather(
            _seats(stack, host, spec, members, on_result), _judge(stack, host), return_exceptions=True
        )
        if isinstance(seats, BaseException):
            raise seats
        for seat in seats:
            stack.callback(seat.channel.close)
        if isinstance(judge, (Error, OSError)):
            await _fail(seats, f"no judge could be started: {judge}", on_result)
            return
        if isinstance(judge, BaseException):
            raise judge
        if not seats:
            return
        await Session(judge, spec, seats, on_result).run(judge_seed)


async def _seats(
    stack: AsyncExitStack, host: Host, spec: Sealed, members: Sequence[Member], on_result: OnResult
) -> list[Seat]:
    made = await asyncio.gather(*(_seat(stack, host, spec, member) for member in members), return_exceptions=True)
    seats: list[Seat] = []
    for member, found in zip(members, made, strict=True):
        if isinstance(found, InvalidSpec):
            await on_result(member.index, candidate_failure(found.message))
        elif isinstance(found, (Error, OSError)):
            await on_result(member.index, infra_failure(f"no sandbox for the candidate: {found}"))
        elif isinstance(found, BaseException):
            raise found
        else:
            seats.append(found)
    return seats


async def _seat(stack: AsyncExitStack, host: Host, spec: Sealed, member: Member) -> Seat:
    code = protocol.candidate_of(member.candidate, spec)
    held = await stack.enter_async_context(host.sandbox(spec.limits, seed=member.seed, determinism=member.determinism))
    ours, theirs = socket.socketpair()
    try:
        program = await held.box.start("candidate", host.program_config, theirs)
    except BaseException:
        ours.close()
        raise
    return Seat(member=member, code=code, held=held, program=program, channel=ours)


async def _judge(stack: AsyncExitStack, host: Host) -> JudgeChannel:
    held = await stack.enter_async_context(host.sandbox())
    judge = await JudgeChannel.start(held.box, host.program_config)
    stack.callback(judge.close)
    return judge


async def _fail(seats: Sequence[Seat], reason: str, on_result: OnResult) -> None:
    for seat in seats:
        await on_result(seat.member.index, infra_failure(reason))


class Session:
    """One job of one judge."""

    def __init__(self, judge: JudgeChannel, spec: Sealed, seats: list[Seat], on_result: OnResult) -> None:
        self._judge = judge
        self._spec = spec
        self._seats = seats
        self._on_result = on_result
        self._begun = time.monotonic()
        self._waiting = set(range(len(seats)))

    async def run(self, judge_seed: str) -> None:
        """Send the job and take what comes until every candidate has its result."""
        codes = [seat.code for seat in self._seats]
        header, body = protocol.job_frame("job", self._spec, codes, judge_seed)
        fds = [take_fd(seat.channel) for seat in self._seats]
        await self._judge.send(header, body, fds, timeout_s=_SEND_S)
        settling: list[asyncio.Task[None]] = []
        try:
            await self._collect(self._begun + protocol.deadline_s(self._spec, len(self._seats)), settling)
            await asyncio.gather(*settling)
        finally:
            for task in settling:
                task.cancel()
        left = [self._seats[index] for index in sorted(self._waiting)]
        await _fail(left, f"the judge gave no verdict: {self._judge.ended}", self._on_result)

    async def _collect(self, deadline: float, settling: list[asyncio.Task[None]]) -> None:
        """Take verdicts until all are there; each is completed beside the others, for that may take a moment."""
        while self._waiting:
            frame = await self._judge.receive(deadline - time.monotonic())
            if frame is None:
                return
            try:
                verdict = await self._take(frame)
            except Error as error:
                self._judge.ended = str(error)
                return
            if verdict is not None:
                settling.append(asyncio.get_running_loop().create_task(self._settle(*verdict)))

    async def _take(self, frame: Header) -> tuple[Seat, GradeResult] | None:
        if frame.get("op") == "usage":
            waited = self._seats[protocol.usage_index(frame, len(self._seats))].held.box.waited_s()
            await self._judge.send(protocol.usage_frame(frame, waited), timeout_s=_SEND_S)
            return None
        if frame.get("op") == "done":
            return None
        index, result = protocol.read_verdict(frame, self._spec, len(self._seats))
        if index not in self._waiting:
            return None
        self._waiting.discard(index)
        return self._seats[index], result

    async def _settle(self, seat: Seat, result: GradeResult) -> None:
        """Complete a verdict with how the candidate's process ended, and end its sandbox."""
        try:
            end = await _end_of(seat, result)
        except Error as error:
            await self._on_result(seat.member.index, lost_sandbox(str(error)))
            return
        if end is not None:
            result = settle(result, end.status, signal=end.signal)
        ack = await _ack_of(seat) if seat.member.determinism != "none" else "off"
        seat.held.discard("graded")
        if ack != "verified" and seat.member.determinism != "none":
            result = infra_failure("what the candidate drew could not be pinned to its seed")
        total_ms = round((time.monotonic() - self._begun) * 1e3, 3)
        result = replace(result, seed=seat.member.seed, seed_ack=ack)
        await self._on_result(seat.member.index, about_box(result, seat.held.box, end=end, total_ms=total_ms))


async def _end_of(seat: Seat, result: GradeResult) -> ProgramEnd | None:
    """How the candidate's program ended, where that may say more than the judge could see.

    Raises when not the program but its sandbox has ended: then the judge saw our trouble, or thinks so.
    """
    if result.status not in ("candidate_error", "failed", "timeout"):
        return None
    if seat.held.box.ran_out_of_memory():
        return ProgramEnd(status="oom", exit_code=None, signal=9)
    wait_s = _END_S if result.status == "candidate_error" else 0.001
    try:
        return await asyncio.wait_for(seat.program.wait(), wait_s)
    except asyncio.TimeoutError:
        return None


async def _ack_of(seat: Seat) -> str:
    try:
        return (await seat.program.pins())[0]
    except Error:
        return "no-ack"
