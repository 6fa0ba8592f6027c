"""Feeds a program's stdin without waiting for it to read."""

from __future__ import annotations

import os
from typing import Tuple

from .loop import OUT, Loop


class Pump:
    """The write end of a stdin pipe, and what is still to be written to it."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._left = memoryview(b"")
        self._watched = self._ending = False
        self._fd = -1

    def open(self) -> int:
        """Make the pipe; the read end is the caller's, to give to the program and close."""
        end, self._fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._fd, False)
        return end

    def feed(self, data: bytes) -> None:
        """Write, now or when there is room."""
        if self._fd >= 0 and not self._ending:
            self._left = memoryview(self._left.tobytes() + data) if self._left else memoryview(data)
            self._flush()

    def end(self) -> None:
        """Close once everything is written."""
        self._ending = True
        if self._fd >= 0:
            self._flush()

    def close(self) -> None:
        """Close now. Idempotent."""
        if self._fd >= 0:
            self._unwatch()
            os.close(self._fd)
            self._fd = -1

    def _flush(self) -> None:
        try:
            while self._left:
                self._left = self._left[os.write(self._fd, self._left[: 1 << 20]) :]
        except BlockingIOError:
            if not self._watched:
                self._watched = True
                self._loop.watch(self._fd, self._flush, OUT)
            return
        except BrokenPipeError:
            self.close()
            return
        self._unwatch()
        if self._ending:
            self.close()

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._loop.unwatch(self._fd)


def pipe_with(loop: Loop, data: bytes, *, keep_open: bool) -> Tuple[int, Pump]:
    """A stdin pipe that yields `data`, then its end unless kept open; the read end and its pump."""
    pump = Pump(loop)
    end = pump.open()
    pump.feed(data)
    if not keep_open:
        pump.end()
    return end, pump
