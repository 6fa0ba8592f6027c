"""Frames between the node and one sandbox, on the event loop, with the other end treated as hostile.

Reading is bounded per turn, so that one sandbox that talks without end cannot keep the others waiting; a frame over its
limit, a header that is no object, or more descriptors than any answer carries end the link. Writing never blocks: what
the socket does not take waits in a buffer, and `send` returns when it has gone or the deadline has passed.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from hotbed.guest import frames
from hotbed.guest.frames import Header

HEADER_LIMIT = 1 << 20
_READ_BYTES = 1 << 16
_READ_MOST = 1 << 20
_FDS_LIMIT = 4
_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder().decode
_FDS_ROOM = socket.CMSG_SPACE(_FDS_LIMIT * 4)

OnFrame = Callable[[Header, bytes, list[int]], None]
OnEnd = Callable[[str], None]


class Link:
    """One socket. `on_frame` gets each frame and owns its descriptors; `on_end` is called once, with the reason."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        body_limit: int,
        on_frame: OnFrame,
        on_end: Callable[[str], None],
        header_limit: int = HEADER_LIMIT,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._fd = sock.fileno()
        self._decoder = frames.Decoder(header_limit=header_limit, body_limit=body_limit, parse=_parsed)
        self._on_frame = on_frame
        self._on_end = on_end
        self._carried = self._received = 0
        self._unsent: deque[tuple[memoryview, tuple[int, ...], asyncio.Future[None]]] = deque()
        self._open = True
        sock.setblocking(False)
        self._loop.add_reader(self._fd, self._on_readable)

    def is_open(self) -> bool:
        """Whether the link can still carry anything."""
        return self._open

    def is_hung_up(self) -> bool:
        """Whether the other end is closed, which may not have been heard yet."""
        looks = select.poll()
        looks.register(self._fd, select.POLLRDHUP)
        return not self._open or bool(looks.poll(0))

    def pause(self) -> None:
        """Read no more for now; the sender will find its socket full."""
        if self._open:
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Read again."""
        if self._open:
            self._loop.add_reader(self._fd, self._on_readable)

    def post(self, header: Header, body: bytes = b"", fds: Sequence[int] = ()) -> asyncio.Future[None] | None:
        """Send a frame as far as it goes at once; a future for the rest, or None if nothing is left.

        The descriptors must stay open until it has gone.
        """
        data = memoryview(_packed(header, body))
        if not self._unsent:
            sent = self._write(data, fds)
            if sent == len(data) or not self._open:
                return None
            if sent:
                data, fds = data[sent:], ()
            self._loop.add_writer(self._fd, self._on_writable)
        done: asyncio.Future[None] = self._loop.create_future()
        self._unsent.append((data, tuple(fds), done))
        return done

    def give(self, header: Header, fd: int) -> None:
        """Send a frame with a descriptor, which is closed here when it has gone, whoever waits."""
        rest = self.post(header, b"", (fd,))
        if rest is None:
            os.close(fd)
        else:
            rest.add_done_callback(lambda _: os.close(fd))

    def _write(self, data: memoryview, fds: Sequence[int]) -> int:
        try:
            return socket.send_fds(self._sock, [data], list(fds)) if fds else self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.end(f"its socket broke: {error.strerror}")
            return 0

    def _on_writable(self) -> None:
        while self._unsent:
            data, fds, done = self._unsent[0]
            sent = self._write(data, fds)
            if not self._open:
                return
            if sent < len(data):
                self._unsent[0] = (data[sent:], () if sent else fds, done)
                return
            self._unsent.popleft()
            if not done.done():
                done.set_result(None)
        self._loop.remove_writer(self._fd)

    def _on_readable(self) -> None:
        taken = 0
        while self._open and taken < _READ_MOST:
            try:
                want = max(_READ_BYTES, min(self._decoder.missing(), _READ_MOST))
                data, ancillary, _, _ = self._sock.recvmsg(want, _FDS_ROOM, socket.MSG_CMSG_CLOEXEC)
            except (BlockingIOError, InterruptedError):
                return
            except (OSError, frames.FrameError) as error:
                self.end(str(error))
                return
            fds = frames.unpack_fds(ancillary)
            if not data:
                self.end("it closed its socket")
                return
            taken += len(data)
            self._received += len(data)
            self._carried += len(fds)
            self._decoder.feed(data, fds)
            if not self._deliver() or (len(data) < want and not fds):  # the kernel ends a read at descriptors
                return

    def _deliver(self) -> bool:
        """Hand over every whole frame; whether the link is still good."""
        try:
            while self._open:
                frame = self._decoder.next()
                if frame is None:
                    if self._carried > _FDS_LIMIT:
                        raise frames.FrameError("more descriptors than any answer has")
                    return True
                fds = self._decoder.fds()
                self._carried -= len(fds)
                self._on_frame(frame[0], frame[1], fds)
        except frames.FrameError as error:
            self.end(str(error))
        return False

    def drain(self) -> None:
        """Take what was sent before the other end ended: that of its end may be heard first."""
        left = -1
        while self._open and left != self._received:
            left = self._received
            self._on_readable()

    def end(self, reason: str, *, linger_s: float = 0.0) -> None:
        """Close the socket. Idempotent; calls `on_end` the first time.

        With `linger_s`, nothing is sent or read any more, and the other end hears of it when this is called again
        without, or so much later.
        """
        if not self._open:
            if not linger_s:
                self._sock.close()
            return
        self._open = False
        self._loop.remove_reader(self._fd)
        if self._unsent:
            self._loop.remove_writer(self._fd)
        close_all(self._decoder.unclaimed())
        if linger_s:
            self._loop.call_later(linger_s, self._sock.close)
        else:
            self._sock.close()
        unsent, self._unsent = self._unsent, deque()
        for _, _, done in unsent:
            if not done.done():
                done.set_result(None)
        on_end = self._on_end
        self._on_frame = self._on_end = _nobody  # whose it was holds it: freed now, and not by a collection some day
        on_end(reason)


def _nobody(*_: object) -> None:
    """Hears what an ended link would tell."""


def _packed(header: Header, body: bytes) -> bytes:
    """`frames.pack` at a quarter of the price, but for text that is no UTF-8."""
    try:
        return frames.joined(_encode(header), body)
    except UnicodeEncodeError:
        return frames.pack(header, body)


def _parsed(data: bytes) -> Header:
    """`frames.parse_header` at a third of the price, but for what only Python's own parser takes."""
    try:
        header = _decode(data)
    except (msgspec.MsgspecError, RecursionError):
        header = None
    return header if type(header) is dict else frames.parse_header(data)


def close_all(fds: Sequence[int]) -> None:
    """Close descriptors that nobody wanted."""
    for fd in fds:
        os.close(fd)


def number(header: Header, name: str, *, most: int = 1 << 62) -> int:
    """A whole number in an agent's answer. Raises `FrameError`."""
    value: Any = header.get(name, 0)
    if type(value) is not int or not 0 <= value <= most:
        raise frames.FrameError(f"{name} is no number in range")
    return int(value)
