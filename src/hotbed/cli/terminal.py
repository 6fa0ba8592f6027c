"""This terminal, for as long as a process of a sandbox has it.

It is put into raw mode, so that every key is the program's, Ctrl-C included; its size is told whenever it changes; and
it is put back whatever happens. One thread reads the keys, the caller's shows what comes.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

CHUNK = 64 << 10


def size_here() -> tuple[int, int]:
    """Rows and columns."""
    columns, rows = shutil.get_terminal_size()
    return rows, columns


def attached(process: Any, *, on_terminal: bool) -> Any:
    """Be the process's input and output until it ends; its result."""
    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    with raw(keys) if on_terminal else nullcontext(), resizing(process) if on_terminal else nullcontext():
        reading = threading.Thread(target=_type, args=(process, keys), daemon=True)
        reading.start()
        with process:
            for stream, data in process:
                write_all(screen if stream == 1 else sys.stderr.fileno(), data)
            return process.wait()


@contextmanager
def raw(fd: int) -> Iterator[None]:
    """A terminal without a line discipline of its own."""
    before = termios.tcgetattr(fd)
    tty.setraw(fd)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


@contextmanager
def resizing(process: Any) -> Iterator[None]:
    """Tell the process whenever this terminal changes its size."""

    def changed(*_: object) -> None:
        # In a thread: the one that is interrupted may be in the middle of speaking to the process.
        threading.Thread(target=process.resize, args=size_here(), daemon=True).start()

    before = signal.signal(signal.SIGWINCH, changed)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def _type(process: Any, fd: int) -> None:
    """Pass on what is typed, until its end."""
    while True:
        try:
            data = os.read(fd, CHUNK)
        except OSError:
            data = b""
        if not data:
            process.end_input()
            return
        process.write(data)


def write_all(fd: int, data: bytes) -> None:
    """Write all of it."""
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
