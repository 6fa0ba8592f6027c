"""Bytes from one socket to another by splice(2): through a pipe in the kernel, never through this process.

A pipe is borrowed only while something is in it, so that ten thousand idle connections hold none.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hotbed.runtime.egress.sockets import readable, writable

_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ
_PIPE_BYTES = 1 << 20
_PIPES_KEPT = 32
_TURN_BYTES = 8 << 20
_FLAGS = 1 | 2  # SPLICE_F_MOVE | SPLICE_F_NONBLOCK

Count = Callable[[int], None]


class Pipes:
    """Pipes to borrow."""

    def __init__(self) -> None:
        self._free: list[tuple[int, int]] = []

    @contextmanager
    def borrowed(self) -> Iterator[tuple[int, int]]:
        """An empty one, for as long as this lasts; it is kept if it was emptied."""
        pipe = self._free.pop() if self._free else _new_pipe()
        clean = False
        try:
            yield pipe
            clean = True
        finally:
            if clean and len(self._free) < _PIPES_KEPT:
                self._free.append(pipe)
            else:
                os.close(pipe[0])
                os.close(pipe[1])

    def close(self) -> None:
        """Close those that are kept."""
        while self._free:
            for fd in self._free.pop():
                os.close(fd)


def _new_pipe() -> tuple[int, int]:
    pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.fcntl(pipe[1], _SET_PIPE_SIZE, _PIPE_BYTES)
    except OSError:
        pass  # this user's share of pipe memory is used up: a small one does it too
    return pipe


async def pump(source: socket.socket, sink: socket.socket, pipes: Pipes, count: Count) -> None:
    """Everything from `source` to its end, then tell `sink`. `count` hears of each piece first, and may raise."""
    turn = 0
    while True:
        await readable(source)
        with pipes.borrowed() as (out, into):
            while True:
                try:
                    size = os.splice(source.fileno(), into, _PIPE_BYTES, flags=_FLAGS)
                except BlockingIOError:
                    break
                if not size:
                    _end_writing(sink)
                    return
                count(size)
                await _drain(out, sink, size)
                turn += size
                if turn >= _TURN_BYTES:
                    turn = 0
                    await asyncio.sleep(0)  # one fast stream must not keep the others waiting


async def _drain(out: int, sink: socket.socket, size: int) -> None:
    while size:
        try:
            size -= os.splice(out, sink.fileno(), size, flags=_FLAGS)
        except BlockingIOError:
            await writable(sink)


def _end_writing(sink: socket.socket) -> None:
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other side has gone already


async def relay(inner: socket.socket, outer: socket.socket, pipes: Pipes, *, up: Count, down: Count) -> None:
    """Both ways until both have ended. Raises `OSError` when one breaks."""
    upward = asyncio.ensure_future(pump(inner, outer, pipes, up))
    downward = asyncio.ensure_future(pump(outer, inner, pipes, down))
    try:
        await asyncio.gather(upward, downward)
    finally:
        upward.cancel()
        downward.cancel()
        await asyncio.gather(upward, downward, return_exceptions=True)
