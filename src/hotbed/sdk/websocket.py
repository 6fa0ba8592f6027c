"""WebSockets without I/O (RFC 6455): the upgrade as bytes, frames as bytes, and a reader of both.

A client masks what it sends. Messages may come in fragments and pings in between; the reader puts the first together
and hands the second out like any message, to be answered by whoever drives it. No extension is ever offered.
"""

from __future__ import annotations

import base64
import os
import struct

from hotbed.errors import ProtocolError
from hotbed.sdk.exchange import error_from
from hotbed.sdk.http import HEAD_LIMIT, ResponseReader

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MESSAGE_LIMIT = 64 << 20
_CONTINUATION = 0
_FINAL, _MASKED = 0x80, 0x80

Message = tuple[int, bytes]


def upgrade_request(target: str, headers: bytes) -> bytes:
    """The head that asks for a WebSocket."""
    key = base64.b64encode(os.urandom(16)).decode("ascii")
    upgrade = (
        f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    return f"GET {target} HTTP/1.1\r\n".encode("ascii") + headers + upgrade.encode("ascii")


def frame(kind: int, data: bytes) -> bytes:
    """One masked message in one frame."""
    size = len(data)
    if size < 126:
        head = struct.pack("!BB", _FINAL | kind, _MASKED | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", _FINAL | kind, _MASKED | 126, size)
    else:
        head = struct.pack("!BBQ", _FINAL | kind, _MASKED | 127, size)
    mask = os.urandom(4)
    return head + mask + masked(data, mask)


def masked(data: bytes, mask: bytes) -> bytes:
    """Data with a mask laid over it; twice is once too often. As one number, or it would take a second for 10 MB."""
    size = len(data)
    cover = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(cover, "big")).to_bytes(size, "big")


class SocketReader:
    """Bytes in, messages out; first of all the answer to the upgrade."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._refusal: ResponseReader | None = None
        self._parts: list[bytes] = []
        self._kind = 0
        self.is_open = False

    def feed(self, data: bytes) -> None:
        """Take bytes as they came. Raises the node's refusal of the upgrade, or `ProtocolError`."""
        if not data:
            raise ConnectionResetError("the node closed the connection")
        self._buffer += data
        if not self.is_open:
            self._read_answer()

    def _read_answer(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 and self._refusal is None:
            if len(self._buffer) > HEAD_LIMIT:
                raise ProtocolError(f"the answer's head is longer than {HEAD_LIMIT} bytes")
            return
        if self._refusal is None and self._buffer.split(b" ", 2)[1:2] == [b"101"]:
            self.is_open = True
            del self._buffer[: end + 4]
            return
        refusal = self._refusal = self._refusal or ResponseReader()
        refusal.feed(bytes(self._buffer))
        self._buffer.clear()
        if refusal.complete:
            raise error_from(refusal, refusal.take())

    def message(self) -> Message | None:
        """The next whole message: its kind, and its bytes; None until more is fed."""
        while (found := self._frame()) is not None:
            kind, final, data = found
            if kind >= CLOSE:
                return kind, data
            self._parts.append(data)
            self._kind = kind or self._kind
            if sum(map(len, self._parts)) > MESSAGE_LIMIT:
                raise ProtocolError("a message is too large")
            if final:
                whole = b"".join(self._parts)
                self._parts.clear()
                return self._kind, whole
        return None

    def _frame(self) -> tuple[int, bool, bytes] | None:
        buffer = self._buffer
        if not self.is_open or len(buffer) < 2:
            return None
        size, at = buffer[1] & 0x7F, 2
        if size >= 126:
            at = 4 if size == 126 else 10
            if len(buffer) < at:
                return None
            size = int.from_bytes(buffer[2:at], "big")
        if buffer[1] & _MASKED or buffer[0] & 0x70 or size > MESSAGE_LIMIT:
            raise ProtocolError("the node sent what is no frame")
        if len(buffer) < at + size:
            return None
        kind, final, data = buffer[0] & 0x0F, bool(buffer[0] & _FINAL), bytes(buffer[at : at + size])
        del buffer[: at + size]
        return kind, final, data
