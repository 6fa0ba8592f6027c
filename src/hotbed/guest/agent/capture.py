"""What a program writes: two pipes, drained without ever blocking, kept head and tail, in merged order.

Each stream keeps the first half of its allowance as it comes and the last half in a ring, so that a flood of any size
costs flat memory; what falls between is counted. The order between the two streams is the order of arrival: the loop
calls back in the order in which the kernel found the pipes readable, and one call takes at most one buffer.

A pipe's end of file says nothing about the program: it may close its output and live on, or end while a child holds the
pipe open. So nobody waits for it. What is in the pipe when the program ends is taken (`drain`), and a pipe that others
still hold is handed to the `Lingering`, which throws away what comes, so that they get no SIGPIPE.
"""

from __future__ import annotations

import fcntl
import os
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from .loop import Loop, Timer
from .terminal import is_hung_up

Run = Tuple[int, int]
OnChunk = Callable[[int, bytes], None]

SCRATCH = memoryview(bytearray(256 << 10))  # made in the template: a fork only copies the pages that it fills
_F_SETPIPE_SZ = 1031  # include/uapi/linux/fcntl.h; in the fcntl module since Python 3.10
_PIPE = 64 << 10
_RUNS_LIMIT = 4096
_LINGERING_LIMIT = 256
_REST_S = 0.01


class Stream:
    """One pipe's read end and what is kept of it."""

    def __init__(self, number: int, limit: int) -> None:
        self.number = number
        self.total = 0
        self.fd = -1
        self.wide = False
        self._head: List[bytes] = []
        self._head_room = limit - limit // 2
        self._tail_size = limit // 2
        self._tail: Optional[bytearray] = None
        self._tailed = 0

    def keep(self, data: memoryview) -> None:
        """Keep what there is room for."""
        self.total += len(data)
        if self._head_room:
            part = data[: self._head_room]
            self._head.append(part.tobytes())
            self._head_room -= len(part)
            data = data[len(part) :]
        if data and self._tail_size:
            self._keep_tail(data)

    def _keep_tail(self, data: memoryview) -> None:
        if self._tail is None:
            self._tail = bytearray(self._tail_size)
        skipped = max(0, len(data) - self._tail_size)
        start = (self._tailed + skipped) % self._tail_size
        self._tailed += len(data)
        data = data[skipped:]
        first = min(len(data), self._tail_size - start)
        self._tail[start : start + first] = data[:first]
        self._tail[: len(data) - first] = data[first:]

    def head(self) -> bytes:
        """The first half of the allowance, or less."""
        return b"".join(self._head)

    def tail(self) -> bytes:
        """The last half of the allowance, or what came after the head."""
        if self._tail is None:
            return b""
        if self._tailed <= self._tail_size:
            return bytes(self._tail[: self._tailed])
        start = self._tailed % self._tail_size
        return bytes(self._tail[start:] + self._tail[:start])

    def last(self, count: int) -> bytes:
        """The last bytes that are kept."""
        if self._tail is not None:
            return self.tail()[-count:]
        end: List[bytes] = []
        for part in reversed(self._head):
            end.insert(0, part)
            if sum(map(len, end)) >= count:
                break
        return b"".join(end)[-count:]


class Kept:
    """The outcome of a capture."""

    def __init__(self, streams: Sequence[Stream], runs: Sequence[Run]) -> None:
        halves = [(stream.head(), stream.tail()) for stream in streams]
        self.stdout, self.stderr = (head + tail if tail else head for head, tail in halves)
        self.stdout_total, self.stderr_total = (stream.total for stream in streams)
        self.truncated = len(self.stdout) < self.stdout_total or len(self.stderr) < self.stderr_total
        if self.truncated:
            gaps = [(len(head), stream.total - len(tail)) for stream, (head, tail) in zip(streams, halves)]
            runs = without_gaps(runs, gaps)
        self.order = [list(run) for run in runs]


def pipes() -> Tuple[List[int], List[int]]:
    """Two pipes for output: the read ends, for `Capture.attach`, and the write ends, to give away and close."""
    pairs = [os.pipe2(os.O_CLOEXEC) for _ in range(2)]
    for fd, _ in pairs:
        os.set_blocking(fd, False)  # a guest can open its own pipe and empty it under our read
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


class Capture:
    """Both output streams of one program."""

    def __init__(self, limit: int, on_chunk: Optional[OnChunk] = None) -> None:
        self._on_chunk = on_chunk
        self._runs: List[Run] = []
        self.streams = (Stream(1, limit), Stream(2, limit))

    def attach(self, ends: Sequence[int]) -> None:
        """Read from these pipes."""
        for stream, fd in zip(self.streams, ends):
            stream.fd = fd

    def total(self) -> int:
        """Bytes written so far."""
        return self.streams[0].total + self.streams[1].total

    def read(self, stream: Stream) -> int:
        """Take one buffer; how many bytes, 0 at the end of file, -1 when there is nothing now."""
        try:
            count = os.readv(stream.fd, [SCRATCH])
        except BlockingIOError:
            return -1
        except OSError as error:
            if not is_hung_up(error):
                raise
            return 0
        if count >= _PIPE and not stream.wide:
            stream.wide = True
            widen(stream.fd)
        if count:
            self.add(stream, SCRATCH[:count])
        return count

    def add(self, stream: Stream, data: memoryview) -> None:
        """Count, keep and pass on."""
        stream.keep(data)
        self._runs = appended(self._runs, stream.number, len(data))
        if self._on_chunk is not None:
            self._on_chunk(stream.number, data.tobytes())

    def drain(self, stream: Stream) -> bool:
        """Take what is in the pipe, but not what is written to it meanwhile without end; whether it is at its end."""
        budget = 2 << 20
        while budget > 0:
            count = self.read(stream)
            if count <= 0:
                return count == 0
            budget -= count
        return False

    def kept(self, runs: Optional[Sequence[Run]] = None) -> Kept:
        """What was kept, in the given order or the order of arrival."""
        return Kept(self.streams, self._runs if runs is None else runs)


def appended(runs: List[Run], number: int, count: int) -> List[Run]:
    """The runs with one more, in bounded memory: the oldest half loses detail when there are too many."""
    if runs and runs[-1][0] == number:
        runs[-1] = (number, runs[-1][1] + count)
        return runs
    if len(runs) >= _RUNS_LIMIT:
        half = len(runs) // 8 * 4
        coarse: List[Run] = []
        for first, second, third, fourth in zip(runs[0:half:4], runs[1:half:4], runs[2:half:4], runs[3:half:4]):
            coarse += [(first[0], first[1] + third[1]), (second[0], second[1] + fourth[1])]
        runs = coarse + runs[half:]
    runs.append((number, count))
    return runs


def without_gaps(runs: Sequence[Run], gaps: Sequence[Tuple[int, int]]) -> List[Run]:
    """The runs of what is left when each stream loses the bytes of its gap (first, past the last)."""
    at = [0, 0]
    left: List[Run] = []
    for number, count in runs:
        start, (first, past) = at[number - 1], gaps[number - 1]
        end = at[number - 1] = start + count
        kept = count - max(0, min(end, past) - max(start, first))
        if kept and left and left[-1][0] == number:
            left[-1] = (number, left[-1][1] + kept)
        elif kept:
            left.append((number, kept))
    return left


def widen(fd: int) -> None:
    """A flood needs fewer turns with a larger pipe. Refused past a user's share (man 7 pipe): then it stays."""
    try:
        fcntl.fcntl(fd, _F_SETPIPE_SZ, len(SCRATCH))
    except OSError:
        pass


class Lingering:
    """Pipes whose program has ended while others still write. Emptied a hundred times a second at most."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._resting: Dict[int, Optional[Timer]] = {}

    def add(self, fd: int) -> None:
        """Take over a read end that nobody watches. The oldest is let go when there are too many."""
        while len(self._resting) >= _LINGERING_LIMIT:
            self._close(next(iter(self._resting)))
        self._watch(fd)

    def _watch(self, fd: int) -> None:
        self._resting[fd] = None
        self._loop.watch(fd, lambda: self._discard(fd))

    def _discard(self, fd: int) -> None:
        try:
            count = os.readv(fd, [SCRATCH])
        except BlockingIOError:
            return
        if count == 0:
            self._close(fd)
            return
        self._loop.unwatch(fd)
        self._resting[fd] = self._loop.after(_REST_S, lambda: self._watch(fd))

    def _close(self, fd: int) -> None:
        timer = self._resting.pop(fd)
        if timer is not None:
            timer.cancel()
        self._loop.unwatch(fd)
        os.close(fd)
