"""One sandbox, as the node drives it: what can be asked of it, and one way for it to end.

The agent enforces an exec's time limit; the node allows it some slack and then kills the sandbox, so a lying or stuck
agent costs its own sandbox and nothing else. A sandbox has ended when its template has reaped its pid 1: then nothing
of it is alive, and its cgroup and whatever else was leased for it goes back.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hotbed.errors import SandboxFailed, SandboxGone
from hotbed.guest.frames import Header
from hotbed.runtime import answers, execs
from hotbed.runtime.base import Ahead, BoxRequest, ExecOutcome, ExecRequest, Limits, OnOutput
from hotbed.runtime.boxfiles import BoxFiles
from hotbed.runtime.boxpins import BoxPins
from hotbed.runtime.conversations import Answer, Conversation, end_of
from hotbed.runtime.egress.outlet import Home, Outlet
from hotbed.runtime.groups import Slot, run_delay_s
from hotbed.runtime.link import close_all
from hotbed.runtime.programs import RunningProgram
from hotbed.runtime.replay.pinner import Pinned, Pinner
from hotbed.runtime.replay.request import PinRequest
from hotbed.runtime.replay.streams import derive
from hotbed.runtime.running import OnStart
from hotbed.runtime.settled import settled
from hotbed.runtime.templates import Ended

_QUICK_S = 30.0
_KILL_S = 20.0
_LEAVE_S = 0.05  # for an agent that has given its last answer to end by itself
_LINGER_S = 1.0  # for one that is killed: it need not wake up to end by itself, unless nobody kills it
_BODY_SLACK = 1 << 20


class ForkBox(BoxFiles):
    """A sandbox until it ends. Made by `backends/fork.py`, before its process is born."""

    isolation = "fork"
    outlet: Outlet | None = None  # its way out, if it was given one
    environ: Mapping[str, str] = {}  # for everything that is run in it

    def __init__(
        self,
        number: int,
        sock: socket.socket,
        home: Home,
        *,
        limits: Limits,
        slot: Slot | None,
        pinner: Pinner | None = None,
        request: BoxRequest | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.id = number
        self.limits = limits
        self.warm_hit = False
        self.fork_time_ms = 0.0
        self.asked_ns = time.monotonic_ns()
        self.slot = slot
        self.usage: Ended | None = None
        self.home = home
        self.request = request or BoxRequest()
        self._programs = itertools.count()
        self._waited_s = 0.0
        self._was_out_of_memory = False
        self._leaves = False
        self.birth: asyncio.Future[None] = self._loop.create_future()  # it is isolated, or never will be
        self._gone: asyncio.Future[str] = self._loop.create_future()
        limit, whose = 2 * limits.output_bytes + _BODY_SLACK, f"sandbox {number}"
        self.talk = Conversation(whose, sock, body_limit=limit, on_notice=self._on_notice, on_end=self._on_talk_end)
        self.pins = BoxPins(pinner, self.talk.fail)

    def is_alive(self) -> bool:
        """Whether it can still be asked for anything."""
        return self.talk.is_open() and not self._gone.done()

    async def ready(self) -> None:
        """Wait until it is isolated and answers; sets `fork_time_ms`. Raises `SandboxFailed`."""
        self.talk.check_open()
        if not self.birth.done():
            self.talk.post({"op": "hello"})
            try:
                await settled(self.birth, _QUICK_S)
            except asyncio.TimeoutError:
                self.talk.fail(SandboxFailed(f"sandbox {self.id} was not ready after {_QUICK_S:.0f} s"))
                self.talk.check_open()

    def is_born(self) -> bool:
        """Whether it has told that it is isolated."""
        return self.birth.done() and self.is_alive()

    async def exec(
        self, request: ExecRequest, on_output: OnOutput | None = None, on_start: OnStart | None = None
    ) -> ExecOutcome:
        """Run one thing to its end."""
        if request.seed is None:
            return await self._exec(request, on_output, on_start)
        with await self.pins.of_exec(request, request.seed) as pinned:
            outcome = await self._exec(request, on_output, on_start, pinned)
            report = await pinned.concluded(outcome.check)
        return execs.with_pins(outcome, report, hostname=self.request.hostname)

    async def pin_ahead(self, kind: Ahead) -> None:
        """Have what runs code, or starts a command, pinned before there is a seed. Raises `SandboxFailed`."""
        await self.pins.begin_ahead(kind, partial(self._ask, timeout_s=_QUICK_S))

    async def _exec(
        self,
        request: ExecRequest,
        on_output: OnOutput | None,
        on_start: OnStart | None,
        pinned: Pinned | None = None,
    ) -> ExecOutcome:
        name = self.talk.new_name()
        header, body = execs.to_frame(request, name, self.limits, stream=bool(on_output), environ=self.environ)
        asking = self._ask(header, body, timeout_s=execs.patience_s(request), name=name, pinned=pinned)
        try:
            if on_output is None and on_start is None:
                answer = await asking
            else:
                answer = await self._watch(name, asyncio.ensure_future(asking), on_output, on_start)
        except SandboxGone:
            if self.ran_out_of_memory():
                return execs.lost_to_memory()
            raise
        except asyncio.CancelledError:
            await self.cancel(name)
            raise
        with self.talk.blame(answer):
            outcome = answers.outcome_of(answer[0], answer[1])
        self._be_born(answer[0])
        self._leaves = request.last
        return outcome

    async def _watch(
        self, name: str, asked: asyncio.Future[Answer], on_output: OnOutput | None, on_start: OnStart | None
    ) -> Answer:
        """Hand on what an exec prints while it runs, then its answer, which does not wait for who is slow to read."""
        try:
            with self.talk.running(name) as running:
                asked.add_done_callback(lambda _: running.end())
                await asyncio.sleep(0)  # the request goes out before anything that is said about it
                if on_start is not None:
                    on_start(running)
                async for header, body in running.pieces():
                    with self.talk.blame((header, body, [])):
                        stream = execs.stream_of(header)
                    if on_output is not None:
                        await on_output(stream, body)
            return await asked
        finally:
            asked.cancel()

    async def start(
        self,
        program: str,
        config: Mapping[str, Any],
        channel: socket.socket,
        *,
        env: Mapping[str, str] | None = None,
        as_pid: int | None = None,
    ) -> RunningProgram:
        """Start a guest program on a channel, of which it gets this end. `as_pid` is the number it must have inside."""
        name = self.talk.new_name()
        env = {**self.environ, **(env or {})}
        header: Header = {"op": "start", "id": name, "program": program, "config": dict(config), "env": env}
        pinned = None
        if self.request.seed is not None:
            seed = derive(self.request.seed, "program", next(self._programs))
            pinned = await self.pins.begin(PinRequest.of(seed, self.request.determinism))
            header["pin"] = self.request.determinism
        if self.request.forkable:
            header["handle"], header["as_pid"] = True, as_pid
        running = RunningProgram(self, name, self.talk.expect(end_of(name)), pinned)
        try:
            answer = await self._ask(header, fds=(channel.fileno(),), timeout_s=_QUICK_S, name=name, pinned=pinned)
            running.hold(answer[2])
        except BaseException:
            self.talk.forget(end_of(name))
            running.end.cancel()
            raise
        finally:
            channel.close()
        return running

    async def cancel(self, name: str) -> None:
        """Kill one exec or program by its name."""
        if self.is_alive():
            self.talk.post({"op": "cancel", "id": name})

    async def peek(self, name: str) -> tuple[bytes, bytes]:
        """What a running exec or program has written so far."""
        answer = await self._ask({"op": "peek"}, timeout_s=_QUICK_S, name=name)
        close_all(answer[2])
        with self.talk.blame(answer):
            streams = answers.streams_of(answer[0], answer[1])
        return streams

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed something in it for memory."""
        if self._gone.done() or self.slot is None:
            return self._was_out_of_memory
        return self.slot.was_out_of_memory()

    def cpu_s(self) -> float:
        """CPU time of all its processes, as its template reaped them."""
        return self.usage.cpu_us / 1e6 if self.usage is not None else 0.0

    def waited_s(self) -> float:
        """How long its processes were runnable without a CPU since last asked."""
        if self.slot is None or self._gone.done():
            return 0.0
        total = sum(map(run_delay_s, self.slot.members()))
        waited, self._waited_s = max(0.0, total - self._waited_s), total
        return waited

    async def kill(self) -> None:
        """End it; returns when nothing of it is left."""
        if not self._gone.done():
            killed = self.birth.done() and not self._leaves
            self.talk.end("it was closed", linger_s=_LINGER_S if killed else 0.0)
            await settled(self._gone, _KILL_S)

    def when_gone(self, call: Callable[[str], None]) -> None:
        """Have something called when it has ended, with the reason."""
        self._gone.add_done_callback(lambda gone: call(gone.result()))

    async def wait_gone(self) -> str:
        """Wait until it has ended; the reason."""
        return await asyncio.shield(self._gone)

    def on_process_end(self, ended: Ended) -> None:
        """Its template has reaped it, or has itself ended. Called once."""
        self.usage = ended
        if self.outlet is not None:
            self.outlet.close()
        self.pins.drop()
        self.talk.hear_out()
        self._was_out_of_memory = self.slot is not None and self.slot.was_out_of_memory()
        if ended.status is None and not self.birth.done() and self.talk.is_open():
            self.talk.fail(SandboxFailed(ended.reason))
        self.talk.end(ended.reason)
        if not self._gone.done():
            self._gone.set_result(ended.reason)

    async def _ask(
        self,
        header: Header,
        body: bytes = b"",
        *,
        fds: tuple[int, ...] = (),
        timeout_s: float,
        name: str | None = None,
        pinned: Pinned | None = None,
    ) -> Answer:
        """One request and its answer; a pin's channel goes along. What waits for its seed waits for nothing else."""
        self.pins.drop()
        if pinned is None:
            return await self.talk.ask(header, body, fds=fds, timeout_s=timeout_s, name=name)
        header, fds = {**header, **pinned.said}, (*fds, *pinned.fds)
        return await self.talk.ask(header, body, fds=fds, timeout_s=timeout_s, name=name, on_sent=pinned.sent)

    def _be_born(self, header: Header) -> None:
        """Whatever it has said, it is isolated; perhaps it has also said since when."""
        if not self.birth.done():
            self.birth.set_result(None)
        ready_ns = header.get("ready_ns")
        if type(ready_ns) is int and self.fork_time_ms == 0.0:
            self.fork_time_ms = min(max(0.001, (ready_ns - self.asked_ns) / 1e6), 60_000.0)

    def _on_notice(self, header: Header) -> None:
        if header.get("op") == "error":
            self.talk.fail(answers.error_of(header))
        else:
            self._be_born(header)

    def _on_talk_end(self, reason: str) -> None:
        if not self.birth.done():
            self.birth.set_exception(self.talk.failure or SandboxGone(reason))
            self.birth.exception()  # retrieved here too, for nobody may be waiting
        if self._leaves:
            self._loop.call_later(_LEAVE_S, self.home.kill_box, self.id)
        else:
            self.home.kill_box(self.id)
