"""A sandbox whose only process is a guest program: the box and the program are one, and end together.

Nothing can be asked of it. What the program prints goes to files held here: anonymous memory that the program fills and
that counts as its own, so nothing has to drain them; and whatever it makes of them, no more than `KEPT` bytes of each
are ever read.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn, Protocol

from hotbed.errors import SandboxGone
from hotbed.runtime.base import BoxRequest, ExecOutcome, ExecRequest, OnOutput, Program, ProgramEnd
from hotbed.runtime.groups import Slot, run_delay_s
from hotbed.runtime.link import close_all
from hotbed.runtime.running import OnStart
from hotbed.runtime.settled import settled
from hotbed.runtime.templates import Ended

KEPT = 1 << 20
_KILL_S = 20.0


class Home(Protocol):
    """What it needs of the template it came from."""

    def kill_box(self, box_id: int) -> None:
        """Kill its pid 1."""
        ...


class SoloBox:
    """A sandbox and its program until they end. Made by `backends/fork.py`, before its process is born."""

    isolation = "fork"
    warm_hit = False
    fork_time_ms = 0.0

    def __init__(self, number: int, home: Home, *, slot: Slot | None, request: BoxRequest) -> None:
        self.id = number
        self.slot = slot
        self.request = request
        self.usage: Ended | None = None
        self.prints = _empty_files("stdout", "stderr")
        self._home = home
        self._out_of_memory = False
        self._waited_s = 0.0
        self._gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._printed = (b"", b"")

    async def ready(self) -> None:
        """It says so itself, to whoever has the other end of its channel."""

    async def wait(self) -> ProgramEnd:
        """Wait for its end. Raises `SandboxGone` when its template went first."""
        reason = await self.wait_gone()
        stdout, stderr = self._printed
        status = self.usage.status if self.usage is not None else None
        if self._out_of_memory:
            return ProgramEnd(status="oom", exit_code=None, signal=signal.SIGKILL, stdout=stdout, stderr=stderr)
        if status is None:
            raise SandboxGone(reason)
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            return ProgramEnd(status="signal", exit_code=None, signal=-code, stdout=stdout, stderr=stderr)
        return ProgramEnd(status="exit" if code else "ok", exit_code=code, stdout=stdout, stderr=stderr)

    async def pins(self) -> tuple[str, tuple[str, ...]]:
        """Nothing is pinned."""
        return "off", ()

    async def output(self) -> tuple[bytes, bytes]:
        """What it has printed so far, head and tail: stdout and stderr."""
        return self._read() if self.prints else self._printed

    async def cancel(self) -> None:
        """Kill the program, which is to end the sandbox."""
        await self.kill()

    async def kill(self) -> None:
        """End it; returns when nothing of it is left."""
        if not self._gone.done():
            self._home.kill_box(self.id)
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
        self._out_of_memory = self.slot is not None and self.slot.was_out_of_memory()
        self._printed = self._read()
        prints, self.prints = self.prints, ()
        close_all(prints)
        if not self._gone.done():
            self._gone.set_result(ended.reason)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed something in it for memory."""
        if self._gone.done() or self.slot is None:
            return self._out_of_memory
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

    def _read(self) -> tuple[bytes, bytes]:
        stdout, stderr = map(_head_and_tail, self.prints)
        return stdout, stderr

    async def exec(
        self, request: ExecRequest, on_output: OnOutput | None = None, on_start: OnStart | None = None
    ) -> ExecOutcome:
        """Refused."""
        _refuse()

    async def start(
        self, program: str, config: Mapping[str, Any], channel: socket.socket, *, env: Mapping[str, str] | None = None
    ) -> Program:
        """Refused."""
        channel.close()
        _refuse()

    async def open(self, path: str, mode: Literal["r", "w", "a"], perm: int = 0o644) -> tuple[int, int]:
        """Refused."""
        _refuse()

    async def dial(self, port: int) -> socket.socket:
        """Refused."""
        _refuse()

    async def pack(self, path: str) -> int:
        """Refused."""
        _refuse()

    async def unpack(self, path: str, source: int) -> int:
        """Refused."""
        os.close(source)
        _refuse()

    async def files(self, operation: Literal["stat", "list", "remove", "mkdir"], path: str) -> Mapping[str, Any]:
        """Refused."""
        _refuse()


def _refuse() -> NoReturn:
    raise SandboxGone("this sandbox runs one program and can be asked for nothing else")


def _empty_files(*names: str) -> tuple[int, ...]:
    """In memory; all of them or none."""
    made: list[int] = []
    try:
        for name in names:
            made.append(os.memfd_create(name, os.MFD_CLOEXEC))
    except OSError:
        close_all(made)
        raise
    return tuple(made)


def _head_and_tail(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    if size <= KEPT:
        return os.pread(fd, size, 0)
    half = KEPT // 2
    return os.pread(fd, half, 0) + os.pread(fd, half, size - half)
