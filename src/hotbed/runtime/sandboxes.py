"""One sandbox, as the node drives it: requests by id over its link, and one way for it to end.

The agent enforces an exec's time limit; the node allows it some slack and then kills the sandbox, so a lying or stuck
agent costs its own sandbox and nothing else. A sandbox has ended when its template has reaped its pid 1: then nothing
of it is alive, and its cgroup and whatever else was leased for it goes back. Output that is streamed is bounded by the
socket: an exec whose reader is slow stops reading the link.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import time
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from hotbed.errors import ProtocolError, SandboxFailed, SandboxGone
from hotbed.guest.frames import FrameError, Header
from hotbed.runtime import answers, execs
from hotbed.runtime.base import (
    BoxRequest,
    Determinism,
    ExecOutcome,
    ExecRequest,
    Limits,
    OnOutput,
    ProgramEnd,
    check_path,
)
from hotbed.runtime.groups import Slot, run_delay_s
from hotbed.runtime.link import Link, close_all
from hotbed.runtime.replay.pinner import Pinned, Pinner
from hotbed.runtime.replay.request import PinRequest
from hotbed.runtime.replay.streams import derive
from hotbed.runtime.templates import Ended

_QUICK_S = 30.0
_TRANSFER_S = 3600.0
_KILL_S = 20.0
_BODY_SLACK = 1 << 20
_QUEUE_HIGH, _QUEUE_LOW = 64, 16

Answer = tuple[Header, bytes, list[int]]


class Home(Protocol):
    """What a sandbox needs of the template it came from."""

    def kill_box(self, box_id: int) -> None:
        """Kill its pid 1."""
        ...


class ForkBox:
    """A sandbox until it ends. Made by `backends/fork.py`, before its process is born."""

    isolation = "fork"

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
        self._home = home
        self._pinner = pinner
        self.request = request or BoxRequest()
        self._programs = itertools.count()
        self._waited_s = 0.0
        self._names = itertools.count(1)
        self._asked: dict[str, asyncio.Future[Answer]] = {}
        self._streams: dict[str, asyncio.Queue[Answer | None]] = {}
        self._born: asyncio.Future[None] = self._loop.create_future()
        self._gone: asyncio.Future[str] = self._loop.create_future()
        self._failure: Exception | None = None
        body_limit = 2 * limits.output_bytes + _BODY_SLACK
        self._link = Link(sock, body_limit=body_limit, on_frame=self._on_frame, on_end=self._on_link_end)

    @property
    def home(self) -> Home:
        """The template's process that it was forked from."""
        return self._home

    def is_alive(self) -> bool:
        """Whether it can still be asked for anything."""
        return self._link.is_open() and not self._gone.done()

    async def ready(self) -> None:
        """Wait until it is isolated and answers; sets `fork_time_ms`. Raises `SandboxFailed`."""
        self._check_alive()
        if not self._born.done():
            self._link.post({"op": "hello"})
            try:
                await asyncio.wait_for(asyncio.shield(self._born), _QUICK_S)
            except asyncio.TimeoutError:
                self.fail(SandboxFailed(f"sandbox {self.id} was not ready after {_QUICK_S:.0f} s"))
                self._check_alive()

    def is_born(self) -> bool:
        """Whether it has told that it is isolated."""
        return self._born.done() and self.is_alive()

    def note_ready(self, header: Mapping[str, Any]) -> None:
        """Learn from an answer when isolation was complete."""
        ready_ns = header.get("ready_ns")
        if type(ready_ns) is int and self.fork_time_ms == 0.0:
            self.fork_time_ms = min(max(0.001, (ready_ns - self.asked_ns) / 1e6), 60_000.0)

    async def exec(self, request: ExecRequest, on_output: OnOutput | None = None) -> ExecOutcome:
        """Run one thing to its end."""
        if request.seed is None:
            return await self._exec(request, on_output)
        with await self._pin(request.seed, request.determinism) as pinned:
            outcome = await self._exec(request, on_output, pinned)
            report = await pinned.report()
        return execs.with_pins(outcome, report, hostname=self.request.hostname)

    async def _pin(self, seed: bytes, level: Determinism) -> Pinned:
        """A pin whose failure ends the sandbox."""
        if self._pinner is None:
            raise SandboxFailed("this sandbox was made without a way to pin what runs in it")

        def fail(reason: str) -> None:
            self.fail(SandboxFailed(f"what ran was not kept pinned: {reason}"))

        return await self._pinner.begin(PinRequest(seed=seed, level="full" if level == "full" else "rng"), fail)

    async def _exec(
        self, request: ExecRequest, on_output: OnOutput | None = None, pinned: Pinned | None = None
    ) -> ExecOutcome:
        name = str(next(self._names))
        header, body = execs.to_frame(request, name, self.limits, stream=on_output is not None)
        try:
            answer = await self._run(name, header, body, execs.patience_s(request), on_output, pinned)
        except SandboxGone:
            if self.slot is not None and self.slot.was_out_of_memory():
                return execs.lost_to_memory()
            raise
        except asyncio.CancelledError:
            await self.cancel(name)
            raise
        with Blame(self, answer):
            outcome = answers.outcome_of(answer[0], answer[1])
        self.note_ready(answer[0])
        return outcome

    async def _run(
        self,
        name: str,
        header: Header,
        body: bytes,
        timeout_s: float,
        on_output: OnOutput | None,
        pinned: Pinned | None,
    ) -> Answer:
        if on_output is None:
            return await self._ask(header, body, timeout_s=timeout_s, name=name, pinned=pinned)
        queue = self._streams[name] = asyncio.Queue()
        asked = asyncio.ensure_future(self._ask(header, body, timeout_s=timeout_s, name=name, pinned=pinned))
        asked.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (piece := await queue.get()) is not None:
                if queue.qsize() < _QUEUE_LOW:
                    self._link.resume()
                with Blame(self, piece):
                    stream = execs.stream_of(piece[0])
                await on_output(stream, piece[1])
            return await asked
        finally:
            self._streams.pop(name, None)
            self._link.resume()
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
        name = str(next(self._names))
        header: Header = {"op": "start", "id": name, "program": program, "config": dict(config), "env": dict(env or {})}
        pinned = None
        if self.request.seed is not None:
            seed = derive(self.request.seed, "program", next(self._programs))
            pinned = await self._pin(seed, self.request.determinism)
            header["pin"] = self.request.determinism
        if self.request.forkable:
            header["handle"], header["as_pid"] = True, as_pid
        running = RunningProgram(self, name, pinned)
        self._asked[name + ".end"] = running.end
        fds = (channel.fileno(),)
        try:
            answer = await self._ask(header, fds=fds, timeout_s=_QUICK_S, name=name, pinned=pinned)
            running.hold(answer[2])
        except BaseException:
            self._asked.pop(name + ".end", None)
            running.end.cancel()
            raise
        finally:
            channel.close()
        return running

    async def open(self, path: str, mode: Literal["r", "w", "a"], perm: int = 0o644) -> tuple[int, int]:
        """A descriptor of a regular file, and its size."""
        check_path(path)
        header = {"op": "open", "path": path, "mode": mode, "perm": perm, "parents": mode != "r"}
        answer = await self._ask(header, timeout_s=_QUICK_S)
        with Blame(self, answer):
            fd = _only(answer[2])
            size = answers.check_regular(fd)
        os.set_blocking(fd, True)
        return fd, size

    async def pass_layer(self, op: Literal["save_layer", "restore_layer"], fd: int) -> Mapping[str, Any]:
        """Have the file layer written to a descriptor, or read from one. The caller closes it."""
        answer = await self._ask({"op": op}, fds=(fd,), timeout_s=_TRANSFER_S)
        close_all(answer[2])
        return answer[0]

    async def pack(self, path: str) -> int:
        """A pipe that yields a tar of `path`."""
        check_path(path)
        answer = await self._ask({"op": "pack", "path": path}, timeout_s=_QUICK_S)
        with Blame(self, answer):
            fd = _only(answer[2])
            answers.check_pipe(fd)
        return fd

    async def unpack(self, path: str, source: int) -> int:
        """Extract the tar that `source` yields; how many members."""
        try:
            check_path(path)
            answer = await self._ask({"op": "unpack", "path": path}, fds=(source,), timeout_s=_TRANSFER_S)
        finally:
            os.close(source)
        close_all(answer[2])
        files = answer[0].get("files", 0)
        return files if type(files) is int else 0

    async def files(self, operation: Literal["stat", "list", "remove", "mkdir"], path: str) -> Mapping[str, Any]:
        """Look at or change files."""
        check_path(path)
        header, _, fds = await self._ask({"op": operation, "path": path}, timeout_s=_QUICK_S)
        close_all(fds)
        return {key: value for key, value in header.items() if key not in ("op", "id")}

    async def cancel(self, name: str) -> None:
        """Kill one exec or program by its name."""
        if self.is_alive():
            self._link.post({"op": "cancel", "id": name})

    async def peek(self, name: str) -> tuple[bytes, bytes]:
        """What a running exec or program has written so far."""
        answer = await self._ask({"op": "peek"}, timeout_s=_QUICK_S, name=name)
        close_all(answer[2])
        with Blame(self, answer):
            return answers.streams_of(answer[0], answer[1])

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed something in it for memory."""
        return self.slot is not None and not self._gone.done() and self.slot.was_out_of_memory()

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
            self._link.end("it was closed")
            await asyncio.wait_for(asyncio.shield(self._gone), _KILL_S)

    async def wait_gone(self) -> str:
        """Wait until it has ended; the reason."""
        return await asyncio.shield(self._gone)

    def on_process_end(self, ended: Ended) -> None:
        """Its template has reaped it, or has itself ended. Called once."""
        self.usage = ended
        if self._failure is None and ended.status is None:
            self._failure = SandboxFailed(ended.reason) if not self._born.done() else None
        self._link.end(ended.reason)
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
        """Send a request and wait for the answer with its id. An error answer raises."""
        if pinned is not None:
            fds = (*fds, pinned.channel)
        self._check_alive()
        name = name or str(next(self._names))
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._asked[name] = answer
        header = {**header, "id": name}
        try:
            sent = self._link.post(header, body, fds)
            if sent is not None:
                await asyncio.wait_for(sent, timeout_s)
            if pinned is not None:
                pinned.sent()
            found = await asyncio.wait_for(answer, timeout_s)
        except asyncio.TimeoutError:
            self.fail(SandboxFailed(f"the sandbox gave no answer to {header['op']} for {timeout_s:.0f} s"))
            raise self._failure or SandboxGone() from None
        finally:
            self._asked.pop(name, None)
        if found[0].get("op") == "error":
            close_all(found[2])
            raise answers.error_of(found[0])
        return found

    def _check_alive(self) -> None:
        if not self.is_alive():
            raise self._failure or SandboxGone(f"sandbox {self.id} has ended")

    def fail(self, error: Exception) -> None:
        """End it because of what it did; whoever waits gets the error."""
        self._failure = self._failure or error
        self._link.end(str(error))

    def _on_frame(self, header: Header, body: bytes, fds: list[int]) -> None:
        op, name = header.get("op"), header.get("id")
        if not self._born.done() and (op != "error" or name is not None):
            self._born.set_result(None)
        if op in ("born", "hello"):
            self.note_ready(header)
        elif op == "output" and name in self._streams:
            close_all(fds)
            self._streams[str(name)].put_nowait((header, body, []))
            if self._streams[str(name)].qsize() > _QUEUE_HIGH:
                self._link.pause()
            return
        elif op == "error" and name is None:
            self.fail(answers.error_of(header))
        else:
            answer = self._asked.get(f"{name}.end" if op == "ended" else str(name))
            if answer is not None and not answer.done():
                answer.set_result((header, body, fds))
                return
        close_all(fds)

    def _on_link_end(self, reason: str) -> None:
        error = self._failure or SandboxGone(f"sandbox {self.id} has ended: {reason}")
        self._failure = self._failure or error
        waiting: list[asyncio.Future[Any]] = [*self._asked.values(), self._born]
        for future in waiting:
            if not future.done():
                future.set_exception(error)
                future.exception()  # retrieved here too, for nobody may be waiting
        self._home.kill_box(self.id)


class RunningProgram:
    """A guest program in a box."""

    def __init__(self, box: ForkBox, name: str, pinned: Pinned | None = None) -> None:
        self._box = box
        self._name = name
        self._pinned = pinned
        self.handle: int | None = None
        self.end: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if pinned is not None:
            self.end.add_done_callback(lambda _: pinned.drop())

    def hold(self, fds: list[int]) -> None:
        """Keep the pidfd that came with the answer, if one did, until the program has ended."""
        self.handle = fds[0] if len(fds) == 1 else None
        if self.handle is None:
            close_all(fds)
        else:
            self.end.add_done_callback(lambda _: self._let_go())

    def _let_go(self) -> None:
        handle, self.handle = self.handle, None
        if handle is not None:
            os.close(handle)

    async def wait(self) -> ProgramEnd:
        """Wait for its end."""
        try:
            answer = await asyncio.shield(self.end)
        except SandboxGone:
            if self._box.slot is not None and self._box.slot.was_out_of_memory():
                return ProgramEnd(status="oom", exit_code=None, signal=9)
            raise
        with Blame(self._box, answer):
            return answers.end_of(answer[0], answer[1])

    async def pins(self) -> tuple[str, tuple[str, ...]]:
        """`seed_ack` so far, and what is pinned."""
        if self._pinned is None:
            return "off", ()
        report = await self._pinned.report()
        return report.ack, report.pinned

    async def output(self) -> tuple[bytes, bytes]:
        """What it has written so far, as far as it is kept: stdout and stderr."""
        return await self._box.peek(self._name)

    async def cancel(self) -> None:
        """Kill it and what it started."""
        await self._box.cancel(self._name)


class Blame:
    """Turns a malformed answer into the end of the sandbox that gave it."""

    def __init__(self, box: ForkBox, answer: Answer) -> None:
        self._box = box
        self._answer = answer

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> Literal[False]:
        if isinstance(error, (FrameError, OSError)):
            close_all(self._answer[2])
            failure = ProtocolError(f"sandbox {self._box.id} answered what is no answer: {error}")
            self._box.fail(failure)
            raise failure from None
        return False


def _only(fds: list[int]) -> int:
    if len(fds) != 1:
        raise FrameError(f"{len(fds)} descriptors where one was due")
    return fds[0]
