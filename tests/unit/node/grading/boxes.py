"""Boxes for tests of grading: what they run is scripted, or a guest program in a plain forked process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hotbed.errors import Error
from hotbed.grading.verdicts import GradeResult
from hotbed.guest.judging import candidate, judge
from hotbed.node.grading.host import Host
from hotbed.runtime.base import BoxRequest, ExecOutcome, ExecRequest, Limits, ProgramEnd, TemplateSpec

PROGRAMS: dict[str, Callable[[socket.socket, dict[str, Any]], None]] = {
    "candidate": candidate.main,
    "judge": judge.main,
}
Answer = ExecOutcome | Error


def ran(stdout: bytes = b"", *, status: str = "ok", exit_code: int | None = 0, **more: Any) -> ExecOutcome:
    """What an exec came to."""
    given = {"stdout": stdout, "stdout_total": len(stdout), **more}
    return ExecOutcome(status=status, exit_code=exit_code, **given)  # type: ignore[arg-type]  # scripted


class FakeProgram:
    """A guest program in a process of its own."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.acks = "verified"
        self.pinned: tuple[str, ...] = ("getrandom", "pid")

    async def wait(self) -> ProgramEnd:
        """Its end."""
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
                return ProgramEnd(status="signal" if number else "ok", exit_code=None, signal=number)
            await asyncio.sleep(0.002)

    async def pins(self) -> tuple[str, tuple[str, ...]]:
        """What the script says."""
        return self.acks, self.pinned if self.acks == "verified" else ()

    async def output(self) -> tuple[bytes, bytes]:
        """Nothing."""
        return b"", b""

    def end(self) -> None:
        """Kill it."""
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


class FakeBox:
    """A box whose execs are answered from a list."""

    isolation = "fake"
    warm_hit = False
    fork_time_ms = 1.25

    def __init__(self, request: BoxRequest, answers: list[Answer], refused: tuple[str, ...]) -> None:
        self.id = 1
        self.request = request
        self.asked: list[ExecRequest] = []
        self.programs: list[FakeProgram] = []
        self.oom = False
        self.end: ProgramEnd | None = None
        self.files: dict[str, bytes] = {}
        self._answers = answers
        self._refused = refused

    async def exec(self, request: ExecRequest) -> ExecOutcome:
        """The next answer of the script."""
        self.asked.append(request)
        answer = self._answers.pop(0) if self._answers else ran()
        if isinstance(answer, Error):
            raise answer
        return answer

    async def start(self, program: str, config: Mapping[str, Any], channel: socket.socket) -> FakeProgram:
        """Run a guest program in a fork that has nothing of ours open but its channel."""
        if program in self._refused:
            channel.close()
            raise Error(f"no {program} today")
        pid = os.fork()
        if pid == 0:
            try:
                for fd in {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2, channel.fileno()}:
                    try:
                        os.close(fd)
                    except OSError:
                        pass
                PROGRAMS[program](channel, dict(config))
            finally:
                os._exit(0)
        channel.close()
        self.programs.append(FakeProgram(pid))
        return self.programs[-1]

    async def open(self, path: str, mode: str) -> tuple[int, int]:
        """A file of the script."""
        from hotbed.errors import FileMissing

        if path not in self.files:
            raise FileMissing(path)
        reader, writer = os.pipe()
        os.write(writer, self.files[path])
        os.close(writer)
        return reader, len(self.files[path])

    async def wait(self) -> ProgramEnd:
        """The end of the program that it is."""
        return self.end or await self.programs[0].wait()

    async def output(self) -> tuple[bytes, bytes]:
        """What that has printed."""
        return b"printed", b""

    def ran_out_of_memory(self) -> bool:
        """As scripted."""
        return self.oom

    def cpu_s(self) -> float:
        """It took none."""
        return 0.0

    def waited_s(self) -> float:
        """It always had a CPU."""
        return 0.0


class FakeHeld:
    """A box that is held until it is discarded."""

    def __init__(self, box: FakeBox) -> None:
        self.box = box
        self.ended = False

    def discard(self, reason: str) -> None:
        """End it."""
        self.ended = True
        for program in self.box.programs:
            program.end()

    async def end(self, reason: str) -> None:
        """The same."""
        self.discard(reason)


class FakeTemplate:
    """A template of boxes."""

    digest = "sha256:0"

    def __init__(self, *, solos: bool = False) -> None:
        self.spec = TemplateSpec(name="python", limits=Limits())
        self.solos = solos


@dataclass
class Forks:
    """Makes boxes; what they answer, and what fails, is set here."""

    answers: list[Answer] = field(default_factory=list)
    refused: tuple[str, ...] = ()
    failures: list[Error] = field(default_factory=list)
    made: list[FakeHeld] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    solos: bool = False

    async def __call__(self, template: Any, request: BoxRequest, lease: Any) -> Any:
        if self.failures:
            raise self.failures.pop(0)
        box = FakeBox(request, self.answers, self.refused)
        box.files = self.files
        if request.solo is not None:
            await box.start(request.solo.program, request.solo.config, request.solo.channel)
        self.made.append(FakeHeld(box))
        return self.made[-1]

    def host(self, **options: Any) -> Host:
        """A host that forks here."""
        given: dict[str, Any] = {"fork": self, "template": FakeTemplate(solos=self.solos), "lease": None, **options}
        return Host(**given)

    @property
    def asked(self) -> list[ExecRequest]:
        """Every exec."""
        return [request for held in self.made for request in held.box.asked]


class Results:
    """Collects results by index."""

    def __init__(self) -> None:
        self.found: dict[int, GradeResult] = {}

    async def __call__(self, index: int, result: GradeResult) -> None:
        assert index not in self.found
        self.found[index] = result
