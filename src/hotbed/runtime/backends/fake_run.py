"""Running processes for the fake backend: deadlines, kept output, statuses."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotbed.guest.capture import Capture, Stream
from hotbed.runtime.base import ExecOutcome, ExecRequest, Limits, OnOutput, Status

CHUNK = 64 << 10
LINGER_S = 0.1  # how long output is read after the program ended, from children that still hold its pipes


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One process to start."""

    argv: tuple[bytes | str, ...]
    cwd: str
    env: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class Run:
    """One exec while it runs: what it prints, and what must end it."""

    root: bytes
    capture: Capture
    on_output: OnOutput | None
    output_kill_bytes: int
    gone: asyncio.Future[str]
    running: set[asyncio.subprocess.Process]
    overflowed: bool = False

    async def drain(self, process: asyncio.subprocess.Process, pipe: asyncio.StreamReader, stream: Stream) -> None:
        """Keep what arrives on one pipe until its end."""
        while data := await pipe.read(CHUNK):
            data = data.replace(self.root, b"")
            self.capture.add(stream, memoryview(data))
            if self.on_output is not None:
                await self.on_output(stream.number, data)
            if self.capture.total() > self.output_kill_bytes:
                self.overflowed = True
                end_group(process)
                return


def end_group(process: asyncio.subprocess.Process) -> None:
    """Kill a process and everything it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


async def run_launches(
    launches: Sequence[Launch],
    request: ExecRequest,
    limits: Limits,
    *,
    root: str,
    gone: asyncio.Future[str],
    running: set[asyncio.subprocess.Process],
    on_output: OnOutput | None,
) -> ExecOutcome:
    """Run processes in order, stopping at the first failure unless asked; together they are one exec."""
    kept = limits.output_bytes if request.output_bytes is None else min(request.output_bytes, limits.output_bytes)
    run = Run(
        root=os.fsencode(root),
        capture=Capture(kept),
        on_output=on_output,
        output_kill_bytes=limits.output_kill_bytes,
        gone=gone,
        running=running,
    )
    start_ns = time.monotonic_ns()
    deadline = time.monotonic() + request.timeout_s
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    steps: list[dict[str, Any]] = []
    status, code, number = ending(0)
    for index, launch in enumerate(launches):
        stdin = request.stdin if index == 0 else b""
        status, code, number = await run_one(run, launch, limits, stdin, deadline)
        steps.append({"exit_code": -1 if code is None else code, "status": status})
        if status != "ok" and not (request.keep_going and status == "exit"):
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = run.capture.kept()
    return ExecOutcome(
        status=status,
        exit_code=code,
        signal=number,
        stdout=output.stdout,
        stderr=output.stderr,
        order=tuple((stream, count) for stream, count in output.order),
        truncated=output.truncated,
        stdout_total=output.stdout_total,
        stderr_total=output.stderr_total,
        ready_ns=start_ns,
        start_ns=start_ns,
        end_ns=time.monotonic_ns(),
        cpu_us=int((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e6),
        maxrss_kib=after.ru_maxrss,
        steps=tuple(steps) if request.kind == "commands" else (),
    )


async def run_one(
    run: Run, launch: Launch, limits: Limits, stdin: bytes, deadline: float
) -> tuple[Status, int | None, int | None]:
    """One process to its end: its status, exit code and signal."""
    try:
        process = await asyncio.create_subprocess_exec(
            *launch.argv,
            cwd=launch.cwd,
            env=dict(launch.env),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError, OSError) as error:
        text = f"{os.fsdecode(launch.argv[0])}: {error.strerror}\n".encode()
        run.capture.add(run.capture.streams[1], memoryview(text))
        return ending(126 if isinstance(error, PermissionError) else 127)
    run.running.add(process)
    if run.gone.done():
        end_group(process)  # the box was killed while this was being born
    try:
        return await wait_process(run, process, stdin, deadline)
    finally:
        if process.returncode is None:
            end_group(process)
            await process.wait()
        run.running.discard(process)


async def wait_process(
    run: Run, process: asyncio.subprocess.Process, stdin: bytes, deadline: float
) -> tuple[Status, int | None, int | None]:
    """Feed, drain and wait, until the deadline."""
    assert process.stdin and process.stdout and process.stderr
    loop = asyncio.get_running_loop()
    work = [
        loop.create_task(feed(process.stdin, stdin)),
        loop.create_task(run.drain(process, process.stdout, run.capture.streams[0])),
        loop.create_task(run.drain(process, process.stderr, run.capture.streams[1])),
    ]
    timed_out = False
    try:
        try:
            await asyncio.wait_for(process.wait(), max(0.0, deadline - time.monotonic()))
        except asyncio.TimeoutError:
            timed_out = True
            end_group(process)
            await process.wait()
        await asyncio.wait(work, timeout=LINGER_S)
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
    if timed_out:
        return "timeout", None, None
    if run.overflowed:
        return "output", None, int(signal.SIGKILL)
    assert process.returncode is not None
    return ending(process.returncode)


async def feed(pipe: asyncio.StreamWriter, data: bytes) -> None:
    """Write a program's standard input and close it."""
    try:
        pipe.write(data)
        await pipe.drain()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it does not read all of it
    finally:
        pipe.close()


def ending(returncode: int) -> tuple[Status, int | None, int | None]:
    """Status, exit code and signal of a process's end as asyncio reports it."""
    if returncode < 0:
        return "signal", None, -returncode
    return ("ok" if returncode == 0 else "exit"), returncode, None
