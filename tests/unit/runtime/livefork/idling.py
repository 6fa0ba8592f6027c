"""Processes that are idle as an environment server is: blocked in a read of descriptor 3."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_WAIT = """
import mmap, os, sys
os.dup2(0, 3)
os.dup2(os.open("/dev/null", os.O_RDWR), 0)
os.dup2(os.dup(1), 2)
os.closerange(4, 64)
{before}
print("ready", {shown}, flush=True)
os.read(3, 1)
{after}
print("done", flush=True)
"""


class Idle:
    """One such process. `told` is what it said of itself before it began to wait."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid
        assert process.stdout is not None
        self.told = process.stdout.readline().split()[1:]

    def go_on(self) -> str:
        """Let its read return; what it says then."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            os.write(self._process.stdin.fileno(), b"x")
        except BrokenPipeError:
            return ""
        return self._process.stdout.read()


@contextmanager
def idle(before: str = "", *, shown: str = "''", after: str = "") -> Iterator[Idle]:
    """Run these statements in a process of its own, have it say what `shown` is, and wait."""
    code = _WAIT.format(before=before, shown=shown, after=after)
    with subprocess.Popen(
        [sys.executable, "-I", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Idle(process)
        finally:
            process.kill()


def forked() -> tuple[int, int]:
    """A fork of this process that only waits, and the descriptor whose end ends it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writer)
        os.dup2(reader, 3)
        os.read(3, 1)
        os._exit(0)
    os.close(reader)
    return pid, writer
