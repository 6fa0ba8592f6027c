"""Feeds a program's stdin, a pipe or a terminal, without waiting for it to read."""

from __future__ import annotations

import os
from typing import Callable, Optional, Tuple

from .loop import OUT, Loop


class Pump:
    """The write end of a stdin pipe, and what is still to be written to it."""

    def __init__(self, loop: Loop, *, end_mark: bytes = b"") -> None:
        """`end_mark` stands for the end where closing does not."""
        self._loop = loop
        self.on_fed: Optional[Callable[[int], None]] = None
        self._end_mark = end_mark
        self._left = memoryview(b"")
        self._own = 0  # bytes of it that nobody is told of
        self._watched = self._ending = False
        self._fd = -1

    def open(self) -> int:
        """Make the pipe; the read end is the caller's, to give to the program and close."""
        end, self._fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._fd, False)
        return end

    def take(self, fd: int) -> None:
        """Write to this, which is the pump's from now on."""
        self._fd = fd

    def feed(self, data: bytes) -> None:
        """Write, now or when there is room. What nobody will read counts as fed.

        What comes before there is an `on_fed` came with the request, and is told to nobody.
        """
        if self.on_fed is None:
            self._own += len(data)
        if self._fd < 0 or self._ending:
            self._fed(len(data))
        else:
            self._left = memoryview(self._left.tobytes() + data) if self._left else memoryview(data)
            self._flush()

    def end(self) -> None:
        """Close once everything is written."""
        if self._end_mark and not self._ending:
            self._own += len(self._end_mark)
            self.feed(self._end_mark)
        self._ending = True
        if self._fd >= 0:
            self._flush()

    def close(self) -> None:
        """Close now. Idempotent."""
        if self._fd >= 0:
            self._unwatch()
            os.close(self._fd)
            self._fd = -1
            self._fed(len(self._left))
            self._left = memoryview(b"")

    def _fed(self, count: int) -> None:
        own = min(count, self._own)
        self._own -= own
        if count > own and self.on_fed is not None:
            self.on_fed(count - own)

    def _flush(self) -> None:
        try:
            while self._left:
                count = os.write(self._fd, self._left[: 1 << 20])
                self._left = self._left[count:]
                self._fed(count)
        except BlockingIOError:
            if not self._watched:
                self._watched = True
                self._loop.watch(self._fd, self._flush, OUT)
            return
        except OSError:  # a pipe that is broken, or a terminal that is hung up
            self.close()
            return
        self._unwatch()
        if self._ending and not self._end_mark:
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
