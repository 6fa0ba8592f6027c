"""A backend whose sandboxes run nothing but the environment server, as a plain process: pools without isolation."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any, Literal

import hotbed.guest
from hotbed.errors import SandboxFailed, SandboxGone
from hotbed.runtime.base import (
    BoxRequest,
    ExecOutcome,
    ExecRequest,
    OnOutput,
    ProgramEnd,
    Template,
    TemplateSpec,
)
from hotbed.runtime.running import OnStart

SERVER = """
import socket, sys
sys.path.insert(0, sys.argv[1])
from guest.environments import env_server
env_server.main(socket.socket(fileno=int(sys.argv[2])), {"path": sys.argv[3]})
"""


class EnvProgram:
    """The environment server as a process."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self._log = log

    async def wait(self) -> ProgramEnd:
        """Wait for its end."""
        code = await self.process.wait()
        stdout = self._log.read_bytes()
        if code < 0:
            return ProgramEnd(status="signal", exit_code=None, signal=-code, stdout=stdout)
        return ProgramEnd(status="exit" if code else "ok", exit_code=code, stdout=stdout)

    async def cancel(self) -> None:
        """Kill it."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)

    async def pins(self) -> tuple[str, tuple[str, ...]]:
        """Nothing is pinned."""
        return "off", ()

    async def output(self) -> tuple[bytes, bytes]:
        """What it has printed."""
        return self._log.read_bytes(), b""


class EnvBox:
    """A sandbox that can do one thing."""

    isolation = "fake"
    warm_hit = False
    fork_time_ms = 0.5

    def __init__(self, number: int, env: Path, backend: EnvBackend) -> None:
        self.id = number
        self.program: EnvProgram | None = None
        self._env = env
        self._backend = backend
        self._gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def ready(self) -> None:
        """At once."""

    async def start(
        self, program: str, config: Mapping[str, Any], channel: socket.socket, *, env: Mapping[str, str] | None = None
    ) -> EnvProgram:
        """Start the environment server on the directory that the template shows at /env."""
        assert program == "env_server"
        path = str(config["path"]).replace("/env", str(self._env), 1)
        guest = str(Path(hotbed.guest.__file__).parent.parent)
        log = Path(tempfile.mkstemp(dir=self._backend.directory)[1])
        with log.open("wb") as sink:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-c", SERVER, guest, str(channel.fileno()), path),
                pass_fds=[channel.fileno()],
                stdout=sink,
                stderr=sink,
            )
        channel.close()
        self.program = EnvProgram(process, log)
        return self.program

    def ran_out_of_memory(self) -> bool:
        """It counts none."""
        return False

    def cpu_s(self) -> float:
        """It keeps no such account."""
        return 0.0

    def waited_s(self) -> float:
        """It keeps no such account."""
        return 0.0

    async def wait(self) -> ProgramEnd:
        """Of one that is its program: wait for its end."""
        assert self.program is not None
        return await self.program.wait()

    async def cancel(self) -> None:
        """Of one that is its program: kill it."""
        await self.kill()

    async def output(self) -> tuple[bytes, bytes]:
        """Of one that is its program: what it has printed."""
        return await self.program.output() if self.program is not None else (b"", b"")

    async def kill(self) -> None:
        """End it."""
        if self.program is not None:
            await self.program.cancel()
            await self.program.process.wait()
        self._backend.boxes.pop(self.id, None)
        if not self._gone.done():
            self._gone.set_result("killed")

    def when_gone(self, call: Callable[[str], None]) -> None:
        """Have something called when it has ended."""
        self._gone.add_done_callback(lambda gone: call(gone.result()))

    async def wait_gone(self) -> str:
        """Wait until it has ended."""
        return await asyncio.shield(self._gone)

    async def exec(
        self, request: ExecRequest, on_output: OnOutput | None = None, on_start: OnStart | None = None
    ) -> ExecOutcome:
        """Not this."""
        raise SandboxGone("this sandbox runs environments only")

    async def open(self, path: str, mode: Literal["r", "w", "a"], perm: int = 0o644) -> tuple[int, int]:
        """Not this."""
        raise SandboxGone("this sandbox runs environments only")

    async def dial(self, port: int) -> socket.socket:
        """Not this."""
        raise SandboxGone("this sandbox runs environments only")

    async def pack(self, path: str) -> int:
        """Not this."""
        raise SandboxGone("this sandbox runs environments only")

    async def unpack(self, path: str, source: int) -> int:
        """Not this."""
        raise SandboxGone("this sandbox runs environments only")

    async def files(self, operation: Literal["stat", "list", "remove", "mkdir"], path: str) -> Mapping[str, Any]:
        """Not this."""
        raise SandboxGone("this sandbox runs environments only")


class EnvTemplate:
    """Forks boxes; `refuse` makes that fail."""

    solos = True

    def __init__(self, spec: TemplateSpec, backend: EnvBackend) -> None:
        self.spec = spec
        self.digest = f"sha256:{abs(hash(spec)):x}"
        self._backend = backend

    async def fork(self, request: BoxRequest) -> EnvBox:
        """A new box."""
        self._backend.forks += 1
        if self._backend.forks in self._backend.refuse:
            raise SandboxFailed("no room in this test")
        box = EnvBox(
            next(self._backend.numbers), Path(dict((b, a) for a, b in self.spec.mounts)["/env"]), self._backend
        )
        self._backend.boxes[box.id] = box
        if request.solo is not None:
            await box.start(request.solo.program, request.solo.config, request.solo.channel)
        return box


class EnvBackend:
    """Keeps what it made, for tests to look at. `refuse` are the numbers of forks that fail, counted from 1."""

    name = "fake"

    def __init__(self) -> None:
        self.boxes: dict[int, EnvBox] = {}
        self.specs: list[TemplateSpec] = []
        self.retired: list[TemplateSpec] = []
        self.refuse: set[int] = set()
        self.forks = 0
        self.numbers = itertools.count(1)
        self.directory = ""

    async def start(self) -> None:
        """A place for logs."""
        self.directory = tempfile.mkdtemp()

    async def close(self) -> None:
        """End what lives."""
        for box in tuple(self.boxes.values()):
            await box.kill()
        shutil.rmtree(self.directory)

    async def template(self, spec: TemplateSpec) -> Template:
        """Any template is warm."""
        self.specs.append(spec)
        return EnvTemplate(spec, self)

    async def retire(self, spec: TemplateSpec) -> None:
        """Note it."""
        self.retired.append(spec)

    def capabilities(self) -> Mapping[str, Any]:
        """None."""
        return {"isolation": "fake"}

    def in_use(self) -> Set[int]:
        """All of them."""
        return self.boxes.keys()

    def stats(self) -> Mapping[str, Any]:
        """How many live."""
        return {"boxes": len(self.boxes)}
