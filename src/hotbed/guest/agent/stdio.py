"""sys.stdin, sys.stdout and sys.stderr of a program in the warm interpreter.

They are what `python main.py` with pipes would have, with two differences that a program cannot trip over. Writes are
noted in the order log, and stderr flushes stdout first, so that the merged output reads as the program meant it. And
stdout, block-buffered as for any pipe, is also flushed after a line: after each of the first lines, then at most every
10 ms, so that a program killed at its deadline leaves what it printed, and one that prints a million lines stays fast.

The objects are made once in the template, over descriptors 0, 1 and 2, which become the program's after the fork.
"""

from __future__ import annotations

import io
import os
import sys
import time
from typing import Any, List, Optional

from .orderlog import OrderLog

_EAGER_LINES = 256
_LAZY_S = 0.01

_raw_write = io.FileIO.write
_text_write = io.TextIOWrapper.write
_clock = time.monotonic


class _Raw(io.FileIO):
    """A descriptor whose writes are noted. With `most`, a file that keeps so many bytes: the first and the last."""

    log: Optional[OrderLog] = None
    bit = 0
    most: Optional[int] = None
    size = 0
    _owed = b""  # was written, though the buffer above has not heard of it

    def write(self, data: Any) -> Any:
        owed = self._owed
        if owed:
            size = len(owed)
            written = memoryview(data).cast("B")[:size] == owed
            self._owed = b""  # with no call from here to the return: nothing can come between
            if written:
                return size
        counts: List[Any] = []
        try:
            counts.extend(map(_raw_write, (self,), (data,)))  # one call: no signal handler runs between its parts
            count = counts[0]
            if count and self.log is not None:
                self.log.note(self.bit, count)
            if count and self.most is not None:
                self._keep(self.most, count)
            return count
        except BaseException:  # a signal handler's, after the write: the buffer will try the same bytes again
            if counts and counts[0]:
                self._owed = bytes(memoryview(data).cast("B")[: counts[0]])
            raise

    def _keep(self, most: int, count: int) -> None:
        self.size += count
        if self.size > most:
            os.ftruncate(self.fileno(), most // 2)
            self.size = os.lseek(self.fileno(), 0, os.SEEK_END)


class _LateRaw(_Raw):
    """Standard error's: what was printed before comes out before."""

    bit = 1
    first: Optional[io.TextIOWrapper] = None

    def write(self, data: Any) -> Any:
        if self.first is not None:
            try:
                self.first.flush()
            except TimeoutError:
                raise  # no pipe's: a signal handler's
            except (OSError, RuntimeError, ValueError):
                pass  # gone, busy under a signal handler, or closed: its own next write will tell
        return _Raw.write(self, data)


class _Stdout(io.TextIOWrapper):
    """Block-buffered, and flushed after a line while that is cheap."""

    _eager = _EAGER_LINES
    _due = 0.0

    def write(self, text: str) -> int:
        count = _text_write(self, text)
        if "\n" in text:
            if self._eager:
                self._eager -= 1
                self.flush()
            elif _clock() >= self._due:
                self._due = _clock() + _LAZY_S
                self.flush()
        return count


class Stdio:
    """The three streams, over descriptors 0, 1 and 2."""

    def __init__(self) -> None:
        reader = io.FileIO(0, "r", closefd=False)
        self._out = _Raw(1, "w", closefd=False)
        self._err = _LateRaw(2, "w", closefd=False)
        for raw, name in ((reader, "<stdin>"), (self._out, "<stdout>"), (self._err, "<stderr>")):
            raw.__dict__.update(name=name, log=None)
        self.stdin = io.TextIOWrapper(io.BufferedReader(reader), "utf-8", "surrogateescape")
        self.stdout = _Stdout(io.BufferedWriter(self._out), "utf-8", "surrogateescape", newline="\n")
        self.stderr = io.TextIOWrapper(
            io.BufferedWriter(self._err), "utf-8", "backslashreplace", newline="\n", line_buffering=True
        )
        for stream, mode in ((self.stdin, "r"), (self.stdout, "w"), (self.stderr, "w")):
            stream.__dict__["mode"] = mode
        self._err.first = self.stdout

    def install(self, log: Optional[OrderLog]) -> None:
        """Make them this process's standard streams."""
        self._out.log = self._err.log = log
        if sys.stdout is self.stdout:
            return  # since the template: writing to `sys` costs a fork many pages
        sys.stdin = sys.__stdin__ = self.stdin  # type: ignore[misc]  # typeshed has the dunder ones final
        sys.stdout = sys.__stdout__ = self.stdout  # type: ignore[misc]  # Final to typeshed, not to Python
        sys.stderr = sys.__stderr__ = self.stderr  # type: ignore[misc]  # as above

    def keep(self, most: int) -> None:
        """Both are files, and are to stay this small: who prints much is not to run out of disk or memory by it."""
        self._out.most = self._err.most = most

    def reset(self) -> None:
        """After a rehearsal: as new."""
        self._out.log = self._err.log = None
        self.stdout.__dict__.update(_eager=_EAGER_LINES, _due=0.0)

    def flush(self) -> bool:
        """Flush what the program has as its streams and ours; whether all of it could be written."""
        whole = True
        for stream in (sys.stdout, self.stdout, sys.stderr, self.stderr):
            try:
                if stream is not None and not stream.closed:
                    stream.flush()
            except Exception:  # noqa: BLE001  # boundary: a program's own stream object may raise anything
                whole = False
        return whole
