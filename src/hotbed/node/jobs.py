"""Jobs of a sandbox: execs in the background, whose output is kept for whoever asks.

Of each job's output the last `LOG_BYTES` are kept, by their offset in all that it printed; a reader that is slower than
that is told how much it missed. A sandbox has at most `JOBS_LIMIT` jobs; those that have ended make room, oldest first.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from hotbed.errors import AtCapacity, Error, NotFound
from hotbed.node.nursery import Nursery
from hotbed.runtime.base import OnOutput
from hotbed.runtime.running import OnStart, Running
from hotbed.wire.execs import ExecRequest, ExecResponse, OutputEvent, text_or_bytes
from hotbed.wire.jobs import JobOutput, JobRow

LOG_BYTES = 256 << 10
RESULT_BYTES = 64 << 10
JOBS_LIMIT = 32
WAIT_MOST_S = 60.0
KILL_AGAIN_S = 1.0  # it may not have begun yet

Run = Callable[[ExecRequest, OnOutput, OnStart], Coroutine[Any, Any, ExecResponse]]


class OutputLog:
    """The end of what was printed, by offset. Both streams in the order in which they came."""

    def __init__(self, keep: int = LOG_BYTES) -> None:
        self._keep = keep
        self._pieces: deque[tuple[int, int, bytes]] = deque()
        self._held = 0
        self.total = 0
        self.start = 0

    def add(self, fd: int, data: bytes) -> None:
        """More was printed."""
        self.total += len(data)
        data = data[-self._keep :]
        self._pieces.append((self.total - len(data), fd, data))
        self._held += len(data)
        while self._held > self._keep:
            self._held -= len(self._pieces.popleft()[2])
        self.start = self._pieces[0][0]

    def since(self, offset: int) -> list[tuple[int, bytes]]:
        """What was printed from an offset on, as far as it is kept."""
        found = []
        for begun, fd, data in self._pieces:
            if begun + len(data) > offset:
                found.append((fd, data[max(0, offset - begun) :]))
        return found


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """One exec in the background."""

    id: str = field(default_factory=lambda: f"job_{secrets.token_hex(8)}")
    started_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    log: OutputLog = field(default_factory=OutputLog)
    running: Running | None = None
    result: ExecResponse | None = None
    error: Error | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self.result is not None or self.error is not None

    async def work(self, run: Run, request: ExecRequest) -> None:
        """Run it to its end."""
        try:
            self.result = await run(request, self._heard, self._begun)
        except Error as error:
            self.error = error
        finally:
            self.running = None
            if not self.is_over:
                self.error = Error("the job was cut short by the end of the node")
            self._tell()

    async def _heard(self, fd: int, data: bytes) -> None:
        self.log.add(fd, data)
        self._tell()

    def _begun(self, running: Running) -> None:
        self.running = running

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    async def wait_end(self, timeout_s: float) -> None:
        """Wait until it has ended, for so long at most."""
        await self._wait(lambda: self.is_over, timeout_s)

    async def wait_news(self, offset: int, timeout_s: float) -> None:
        """Wait until it has printed beyond an offset or ended, for so long at most."""
        await self._wait(lambda: self.is_over or self.log.total > offset, timeout_s)

    async def end(self) -> None:
        """Kill it, and wait until it has ended."""
        while not self.is_over:
            if self.running is not None:
                self.running.kill()
            await self._wait(lambda: self.is_over, KILL_AGAIN_S)

    async def _wait(self, condition: Callable[[], bool], timeout_s: float) -> None:
        deadline = asyncio.get_running_loop().time() + min(timeout_s, WAIT_MOST_S)
        while not condition():
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return
            try:
                await asyncio.wait_for(self.changed.wait(), left)
            except asyncio.TimeoutError:
                return

    def row(self) -> JobRow:
        """It as listed."""
        return JobRow(
            id=self.id,
            state="running" if not self.is_over else "failed" if self.result is None else "ended",
            started_at=self.started_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            output_total=self.log.total,
            result=self.result,
            error=self.error.to_wire() if self.error is not None else None,
        )

    def output(self, offset: int) -> JobOutput:
        """What it printed from an offset on."""
        events = []
        for fd, data in self.log.since(offset):
            text, raw = text_or_bytes(data)
            events.append(OutputEvent(fd=2 if fd == 2 else 1, data=text, data_b64=raw))
        missed = max(0, self.log.start - offset)
        return JobOutput(
            id=self.id, state=self.row().state, next=max(offset, self.log.total), dropped=missed, events=tuple(events)
        )


class Jobs:
    """The jobs of one sandbox."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def __iter__(self) -> Iterator[Job]:
        return iter(tuple(self._jobs.values()))

    def __len__(self) -> int:
        return len(self._jobs)

    def start(self, run: Run, request: ExecRequest, nursery: Nursery) -> Job:
        """Start one. Raises `AtCapacity` when all that the sandbox may have are running."""
        while len(self._jobs) >= JOBS_LIMIT:
            over = next((job for job in self if job.is_over), None)
            if over is None:
                raise AtCapacity(f"{JOBS_LIMIT} jobs run in this sandbox", hint="wait for one, or kill it")
            del self._jobs[over.id]
        kept = RESULT_BYTES if request.output_bytes is None else min(request.output_bytes, RESULT_BYTES)
        job = Job()
        self._jobs[job.id] = job
        nursery.start(job.work(run, replace(request, output_bytes=kept, stream=False)), name=job.id)
        return job

    def get(self, job_id: str) -> Job:
        """One of them. Raises `NotFound`."""
        job = self._jobs.get(job_id)
        if job is None:
            raise NotFound(
                f"no job {job_id[:64]!r} in this sandbox", hint="jobs that have ended make room for new ones"
            )
        return job

    def forget(self, job: Job) -> None:
        """Keep nothing of it. Idempotent."""
        self._jobs.pop(job.id, None)
