"""Running processes for the fake backend: deadlines, kept output, statuses.

A process's end is its pidfd becoming readable, never the end of its output: a child that it left behind may hold its
pipes open for as long as it likes. What such a child writes later is thrown away.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotbed.guest.agent.capture import Capture, Stream, pipes
from hotbed.runtime.base import ExecOutcome, ExecRequest, OnOutput, Status

MARK = "HOTBED_FAKE"
_CHUNK = 64 << 10
_QUEUE_HIGH = 16

End = tuple[Status, "int | None", "int | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One process to start."""

    argv: tuple[bytes | str, ...]
    cwd: str
    env: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class Run:
    """One exec while it runs: what its processes print, and what must end them."""

    root: bytes
    mark: str
    capture: Capture
    gone: asyncio.Future[str]
    lingering: set[int]
    output_kill_bytes: int
    chunks: asyncio.Queue[tuple[int, bytes] | None] | None = None
    paused: list[Started] = field(default_factory=list)
    overflowed: bool = False
    started: Started | None = None
    on_start: Callable[[], None] = lambda: None
    cpu_us: int = 0
    maxrss_kib: int = 0


class Started:
    """A process, its two pipes and its end."""

    def __init__(self, run: Run, launch: Launch, stdin: bytes, *, stdin_open: bool = False) -> None:
        """Start it. Raises OSError."""
        self._run = run
        run.started = self
        self._loop = asyncio.get_running_loop()
        self._ends, theirs = pipes()
        try:
            self.process = spawn(launch, stdin, theirs, run.mark, stdin_open=stdin_open)
        except BaseException:
            close_all(self._ends)
            raise
        finally:
            close_all(theirs)
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._pidfd = os.pidfd_open(self.process.pid)
        self._loop.add_reader(self._pidfd, self._on_exit)
        self.resume()
        run.on_start()

    def resume(self) -> None:
        """Read what it prints."""
        for stream, fd in zip(self._run.capture.streams, self._ends, strict=True):
            self._loop.add_reader(fd, self._on_output, stream, fd)

    def pause(self) -> None:
        """Leave it in the pipes; a full pipe holds the process."""
        for fd in self._ends:
            self._loop.remove_reader(fd)

    async def wait(self, deadline: float) -> End:
        """Its end, or the end that the deadline or the box's own end puts to it."""
        timed_out = False
        try:
            left = max(0.0, deadline - time.monotonic())
            ends: set[asyncio.Future[Any]] = {self.exited, self._run.gone}
            await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            timed_out = not self.exited.done()
        finally:
            if not self.exited.done():
                os.killpg(self.process.pid, signal.SIGKILL)
                kill_marked(self._run.mark)
                await asyncio.wait({self.exited})
            self._let_go()
            if self.process.stdin is not None:
                self.process.stdin.close()
        if self._run.overflowed:
            return "output", None, int(signal.SIGKILL)
        return ("timeout", None, None) if timed_out else ending(self.exited.result())

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self._run.cpu_us += int((usage.ru_utime + usage.ru_stime) * 1e6)
        self._run.maxrss_kib = max(self._run.maxrss_kib, usage.ru_maxrss)
        self.exited.set_result(self.process.returncode)

    def _on_output(self, stream: Stream, fd: int) -> int:
        """Take one buffer; how many bytes it had."""
        run = self._run
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return 0
        if not data:
            self._loop.remove_reader(fd)
            return 0
        data_seen = data.replace(run.root, b"")
        run.capture.add(stream, memoryview(data_seen))
        if run.chunks is not None:
            run.chunks.put_nowait((stream.number, data_seen))
            if run.chunks.qsize() > _QUEUE_HIGH and self not in run.paused:
                run.paused.append(self)
                self.pause()
        if run.capture.total() > run.output_kill_bytes and not run.overflowed:
            run.overflowed = True
            kill_marked(run.mark)
        return len(data)

    def _let_go(self) -> None:
        """Take what is in the pipes, then read them only so that nobody who still writes is stopped by it."""
        self.pause()
        for stream, fd in zip(self._run.capture.streams, self._ends, strict=True):
            budget = 2 << 20
            while budget > 0 and (count := self._on_output(stream, fd)):
                budget -= count
            self._run.lingering.add(fd)
            self._loop.add_reader(fd, discard, fd, self._run.lingering)


async def run_launches(
    launches: Sequence[Launch], request: ExecRequest, run: Run, on_output: OnOutput | None
) -> ExecOutcome:
    """Run processes in order, stopping at the first failure unless asked; together they are one exec."""
    start_ns = time.monotonic_ns()
    pump = None
    if on_output is not None:
        run.chunks = asyncio.Queue()
        pump = asyncio.get_running_loop().create_task(pass_on(run, on_output))
    try:
        end, steps = await run_in_order(launches, request, run)
        outcome = outcome_of(run, end, tuple(steps) if request.kind == "commands" else (), start_ns)
        if pump is not None and run.chunks is not None:
            run.chunks.put_nowait(None)
            await pump
    finally:
        if pump is not None:
            pump.cancel()
    return outcome


def outcome_of(run: Run, end: End, steps: tuple[Mapping[str, Any], ...], start_ns: int) -> ExecOutcome:
    """What is told of an exec that has just ended."""
    output = run.capture.kept()
    return ExecOutcome(
        status=end[0],
        exit_code=end[1],
        signal=end[2],
        stdout=output.stdout,
        stderr=output.stderr,
        order=tuple((stream, count) for stream, count in output.order),
        truncated=output.truncated,
        stdout_total=output.stdout_total,
        stderr_total=output.stderr_total,
        ready_ns=start_ns,
        start_ns=start_ns,
        end_ns=time.monotonic_ns(),
        cpu_us=run.cpu_us,
        maxrss_kib=run.maxrss_kib,
        steps=steps,
    )


async def run_in_order(
    launches: Sequence[Launch], request: ExecRequest, run: Run
) -> tuple[End, list[Mapping[str, Any]]]:
    """The end of the last one that ran, and what is told of each."""
    deadline = time.monotonic() + request.timeout_s
    end = ending(0)
    steps: list[Mapping[str, Any]] = []
    for index, launch in enumerate(launches):
        try:
            started = Started(run, launch, request.stdin if index == 0 else b"", stdin_open=request.stdin_open)
        except OSError as error:
            text = f"{os.fsdecode(launch.argv[0])}: {error.strerror}\n".encode()
            run.capture.add(run.capture.streams[1], memoryview(text))
            end = ending(127 if isinstance(error, FileNotFoundError) else 126)
        else:
            end = await started.wait(deadline)
        steps.append({"exit_code": -1 if end[1] is None else end[1], "status": end[0]})
        if end[0] != "ok" and not (request.keep_going and end[0] in ("exit", "signal")):
            break
    return end, steps


async def pass_on(run: Run, on_output: OnOutput) -> None:
    """Hand over output as it comes, and let its writer go on when enough has been taken."""
    assert run.chunks is not None
    while (chunk := await run.chunks.get()) is not None:
        await on_output(*chunk)
        if run.paused and run.chunks.qsize() <= _QUEUE_HIGH // 2:
            for started in run.paused:
                if not started.exited.done():
                    started.resume()
            run.paused.clear()


def spawn(
    launch: Launch, stdin: bytes, output: Sequence[int], mark: str, *, stdin_open: bool = False
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, marked so that it and what it starts can be found."""
    with tempfile.TemporaryFile() as source:
        source.write(stdin)
        source.seek(0)
        return subprocess.Popen(
            launch.argv,
            cwd=launch.cwd,
            env={**launch.env, MARK: mark},
            stdin=subprocess.PIPE if stdin_open else source,
            bufsize=0,
            stdout=output[0],
            stderr=output[1],
            start_new_session=True,
        )


def kill_marked(mark: str) -> None:
    """Kill every process whose mark begins so. Again, until none is left, for they may be forking."""
    for _ in range(20):
        if not signal_marked(mark, signal.SIGKILL):
            return


def signal_marked(mark: str, number: int) -> list[int]:
    """Signal every process whose mark begins so; who they are."""
    wanted = f"{MARK}={mark}".encode()
    found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if has_mark(pid, wanted)]
    for pid in found:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
    return found


def has_mark(pid: int, wanted: bytes) -> bool:
    """Whether a process was started with this mark, or with one that begins so."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return any(entry.startswith(wanted) for entry in environment.split(b"\0"))


def discard(fd: int, lingering: set[int]) -> None:
    """Read and forget; at the end of file, close."""
    try:
        if os.read(fd, _CHUNK):
            return
    except BlockingIOError:
        return
    asyncio.get_running_loop().remove_reader(fd)
    lingering.discard(fd)
    os.close(fd)


def close_all(fds: Sequence[int]) -> None:
    """Close descriptors."""
    for fd in fds:
        os.close(fd)


def ending(returncode: int) -> End:
    """Status, exit code and signal of a process's end."""
    if returncode < 0:
        return "signal", None, -returncode
    return ("ok" if returncode == 0 else "exit"), returncode, None
