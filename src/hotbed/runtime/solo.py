"""A guest program that is its sandbox's only process: its end is the sandbox's, its prints are files held here.

The files are anonymous memory that the program fills and that counts as its own; nothing has to drain them. Whatever
the program makes of them, no more than `KEPT` bytes of each are ever read.
"""

from __future__ import annotations

import os
import signal
from typing import Protocol

from hotbed.errors import SandboxGone
from hotbed.runtime.base import ProgramEnd
from hotbed.runtime.link import close_all
from hotbed.runtime.templates import Ended

KEPT = 1 << 20


class Place(Protocol):
    """What such a program needs of its sandbox."""

    usage: Ended | None

    async def wait_gone(self) -> str:
        """Wait until it has ended."""
        ...

    async def kill(self) -> None:
        """End it."""
        ...

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed something in it for memory."""
        ...


class SoloProgram:
    """The program and its sandbox, which end together."""

    def __init__(self, box: Place) -> None:
        self._box = box
        self.prints = tuple(os.memfd_create(name, os.MFD_CLOEXEC) for name in ("stdout", "stderr"))

    async def wait(self) -> ProgramEnd:
        """Wait for its end. Raises `SandboxGone` when its template went first."""
        reason = await self._box.wait_gone()
        stdout, stderr = self._read()
        self.close()
        status = self._box.usage.status if self._box.usage is not None else None
        if self._box.ran_out_of_memory():
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
        """What it has written so far, head and tail: stdout and stderr."""
        return self._read()

    async def cancel(self) -> None:
        """Kill it, which is to end its sandbox."""
        await self._box.kill()

    def close(self) -> None:
        """Let go of the files. Idempotent."""
        prints, self.prints = self.prints, ()
        close_all(prints)

    def _read(self) -> tuple[bytes, bytes]:
        stdout, stderr = map(_head_and_tail, self.prints) if self.prints else (b"", b"")
        return stdout, stderr


def _head_and_tail(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    if size <= KEPT:
        return os.pread(fd, size, 0)
    half = KEPT // 2
    return os.pread(fd, half, 0) + os.pread(fd, half, size - half)
