"""Frames on a stream socket: a JSON header, raw bytes, and file descriptors that ride along.

One frame is two unsigned 32-bit big-endian lengths, the header (a JSON object, UTF-8), then the body (any bytes). The
lengths come first so that a reader can refuse a frame before it holds any of it; the body is raw so that output and
files are never re-encoded. Descriptors (SCM_RIGHTS) arrive with the first byte of the frame that was sent with them.

Both ends may be hostile to each other, so every length is capped and every header is checked to be an object. The
`Decoder` does no I/O; `Connection` is its blocking driver, and the node drives the same decoder from its event loop.
"""

from __future__ import annotations

import array
import os
import socket
import struct
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

from . import jsontext

Header = Dict[str, Any]
Frame = Tuple[Header, bytes]

HEADER_LIMIT = 8 << 20
BODY_LIMIT = 512 << 20
FDS_LIMIT = 253  # SCM_MAX_FD, include/net/scm.h

_LENGTHS = struct.Struct("!II")
_LENGTHS_SIZE = _LENGTHS.size
_lengths = _LENGTHS.unpack_from
_CHUNK = 1 << 16
FDS_ROOM = socket.CMSG_SPACE(FDS_LIMIT * 4)
# Plain ints, not enums; and functions by names of their own: after a fork each object on the way is a page to copy.
_SOL_SOCKET, _SCM_RIGHTS = int(socket.SOL_SOCKET), int(socket.SCM_RIGHTS)
_CLOEXEC = int(socket.MSG_CMSG_CLOEXEC)
_loads, _dumps = jsontext.loads, jsontext.dumps


class FrameError(ValueError):
    """The bytes are not a frame, or one larger than its limit."""


class Closed(EOFError):
    """The other end is gone, between two frames or in the middle of one."""


def pack(header: Header, body: bytes = b"") -> bytes:
    """One frame as bytes. The header must be plain JSON data."""
    head = _dumps(header)
    return _LENGTHS.pack(len(head), len(body)) + head + body


def joined(head: bytes, body: bytes) -> bytes:
    """One frame as bytes, of a header that is JSON already."""
    return b"".join((_LENGTHS.pack(len(head), len(body)), head, body))


def send(sock: socket.socket, header: Header, body: bytes = b"", fds: Sequence[int] = ()) -> None:
    """Send one frame on a blocking socket, descriptors with its first byte. Raises `Closed` when nobody reads."""
    data = pack(header, body)
    try:
        if fds:
            sent = (
                socket.send_fds(sock, [data], list(fds)) if hasattr(socket, "send_fds") else _send_fds(sock, data, fds)
            )
            data = data[sent:]
        if data:
            sock.sendall(data)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise Closed(str(error)) from None


def _send_fds(sock: socket.socket, data: bytes, fds: Sequence[int]) -> int:
    """`socket.send_fds` came with Python 3.9."""
    return sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])


class Decoder:
    """Bytes in, frames out. Refuses what exceeds its limits before holding it."""

    def __init__(
        self,
        *,
        header_limit: int = HEADER_LIMIT,
        body_limit: int = BODY_LIMIT,
        parse: Optional[Callable[[bytes], Header]] = None,
    ) -> None:
        self._buffer = bytearray()
        self._parse = parse or parse_header
        self._header_limit = header_limit
        self._body_limit = body_limit
        self._taken = 0
        self._fds: Deque[Tuple[int, List[int]]] = deque()

    def feed(self, data: bytes, fds: Sequence[int] = ()) -> None:
        """Add what one recvmsg gave, descriptors included.

        They belong to the last frame that begins in `data`: the kernel joins what was sent before to a message with
        descriptors, but nothing after it (`unix_stream_read_generic`, net/unix/af_unix.c).
        """
        self._buffer += data
        if fds:
            self._fds.append((self._taken + self._begun(), list(fds)))

    def _begun(self) -> int:
        count, at = 0, 0
        while at < len(self._buffer):
            count += 1
            if len(self._buffer) - at < _LENGTHS.size:
                break
            at += _LENGTHS.size + sum(_LENGTHS.unpack_from(self._buffer, at))
        return count

    def fds(self) -> List[int]:
        """The descriptors of the frame that `next` returned last, which are the caller's from now on."""
        found: List[int] = []
        while self._fds and self._fds[0][0] <= self._taken:
            found += self._fds.popleft()[1]
        return found

    def unclaimed(self) -> List[int]:
        """Every descriptor whose frame has not been returned: to close, when no more will be read."""
        fds = [fd for _, carried in self._fds for fd in carried]
        self._fds.clear()
        return fds

    def pending(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._buffer)

    def missing(self) -> int:
        """How many bytes the frame at hand still lacks (at least 1), so that a reader can ask for them at once."""
        if len(self._buffer) < _LENGTHS_SIZE:
            return _LENGTHS_SIZE - len(self._buffer)
        return max(1, self._ends()[1] - len(self._buffer))

    def _ends(self) -> Tuple[int, int]:
        """Where the header and the body of the frame at hand end, whose lengths are there."""
        head, body = _lengths(self._buffer)
        if head > self._header_limit or body > self._body_limit:
            raise FrameError(
                f"frame of {head}+{body} bytes exceeds the limit of {self._header_limit}+{self._body_limit}"
            )
        return _LENGTHS_SIZE + head, _LENGTHS_SIZE + head + body

    def next(self) -> Optional[Frame]:
        """The next whole frame, or None until more is fed."""
        buffer = self._buffer
        if len(buffer) < _LENGTHS_SIZE:
            return None
        head, end = self._ends()
        if len(buffer) < end:
            return None
        header = self._parse(bytes(buffer[_LENGTHS_SIZE:head]))
        body = bytes(buffer[head:end])
        if len(buffer) == end:
            self._buffer = bytearray()  # gives a large body's memory back at once
        else:
            del buffer[:end]
        self._taken += 1
        return header, body


def parse_header(data: bytes) -> Header:
    """A header's JSON, checked to be an object."""
    try:
        header = _loads(data)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"frame header is not JSON: {error}") from None
    if type(header) is not dict:
        raise FrameError(f"frame header is a {type(header).__name__}, not an object")
    return header


def only(data: bytes) -> Optional[Header]:
    """The header of the frame that this is, if it is just one and whole. Raises `FrameError`."""
    if len(data) < _LENGTHS_SIZE:
        return None
    head, body = _lengths(data)
    if len(data) != _LENGTHS_SIZE + head + body:
        return None
    return parse_header(data[_LENGTHS_SIZE : _LENGTHS_SIZE + head])


def body_of(data: bytes) -> bytes:
    """The body of such a frame."""
    return data[_LENGTHS_SIZE + _lengths(data)[0] :]


class Connection:
    """Whole frames over a blocking stream socket, with the descriptors that came along."""

    def __init__(self, sock: socket.socket, *, header_limit: int = HEADER_LIMIT, body_limit: int = BODY_LIMIT) -> None:
        self.sock = sock
        self._limits = header_limit, body_limit
        self._decoding: Optional[Decoder] = None  # from the first frame on: some connections never get one

    @property
    def _decoder(self) -> Decoder:
        if self._decoding is None:
            self._decoding = Decoder(header_limit=self._limits[0], body_limit=self._limits[1])
        return self._decoding

    def fileno(self) -> int:
        """The socket's descriptor, for poll."""
        return self.sock.fileno()

    def send(self, header: Header, body: bytes = b"", fds: Sequence[int] = ()) -> None:
        """Send one frame."""
        send(self.sock, header, body, fds)

    def buffered(self) -> bool:
        """Whether bytes of a further frame were already received: poll would not tell."""
        return self._decoding is not None and self._decoding.pending()

    def receive(self) -> Tuple[Header, bytes, List[int]]:
        """Wait for one frame; its descriptors are the caller's. Raises `Closed`, `FrameError`, the socket's timeout."""
        while True:
            frame = self._decoder.next()
            if frame is not None:
                return frame[0], frame[1], self._decoder.fds()
            self._fill()

    def _fill(self) -> None:
        want = max(_CHUNK, min(self._decoder.missing(), 1 << 20)) if self._decoder.pending() else _CHUNK
        try:
            data, ancillary, _, _ = self.sock.recvmsg(want, FDS_ROOM, _CLOEXEC)
        except ConnectionResetError as error:
            raise Closed(str(error)) from None
        self.take(data, ancillary)

    def take(self, data: bytes, ancillary: Sequence[Tuple[int, int, bytes]]) -> None:
        """What a recvmsg gave, to be received as frames. Raises `Closed` if that was nothing."""
        fds = unpack_fds(ancillary) if ancillary else ()
        if not data:
            raise Closed("the other end closed the socket")
        self._decoder.feed(data, fds)

    def close(self) -> None:
        """Close the socket and any descriptor that nobody took. Idempotent."""
        for fd in self._decoder.unclaimed():
            os.close(fd)
        self.sock.close()


def unpack_fds(ancillary: Sequence[Tuple[int, int, bytes]]) -> List[int]:
    """The descriptors in recvmsg's ancillary data."""
    fds: List[int] = []
    for level, kind, data in ancillary:
        if level == _SOL_SOCKET and kind == _SCM_RIGHTS:
            fds += memoryview(data)[: len(data) & -4].cast("i")
    return fds
