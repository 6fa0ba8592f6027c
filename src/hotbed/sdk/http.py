"""HTTP/1.1 without I/O: a request as bytes, and a reader that turns received bytes into a response.

The reader is fed whatever a socket gave (`feed`, with b"" for the end of the stream) and knows three framings of a
body: Content-Length, chunked, and "until the connection closes". Body bytes are handed out as they come by `take`, so
that a download of any size passes through without being held. Anything that is not HTTP raises `ProtocolError`.
"""

from __future__ import annotations

from hotbed.errors import ProtocolError

HEAD_LIMIT = 64 << 10
_LINE_LIMIT = 8 << 10


def request_head(method: str, target: str, headers: bytes, body_length: int | None) -> bytes:
    """The head of a request. A body of unknown length (None) will be sent chunked."""
    framing = b"Transfer-Encoding: chunked" if body_length is None else b"Content-Length: %d" % body_length
    return f"{method} {target} HTTP/1.1\r\n".encode("ascii") + headers + framing + b"\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; empty data is the end mark."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class ResponseReader:
    """Reads one response. `status` is 0 until the head is known."""

    def __init__(self, *, has_body: bool = True) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.complete = False
        self.reusable = False
        self.touched = False
        self._has_body = has_body
        self._buffer = b""
        self._ready: list[bytes] = []
        self._parse = self._parse_head
        self._left = 0

    def feed(self, data: bytes) -> None:
        """Take bytes as they came; b"" says that there will be no more."""
        if not data:
            self._end_of_stream()
            return
        self.touched = True
        self._buffer = self._buffer + data if self._buffer else data
        while self._buffer and not self.complete and self._parse():
            pass
        if self.complete and self._buffer:
            self.reusable = False  # bytes after the answer belong to nothing we asked

    def take(self) -> bytes:
        """The body's bytes since the last call."""
        if len(self._ready) == 1:
            return self._ready.pop()
        data = b"".join(self._ready)
        self._ready.clear()
        return data

    def _end_of_stream(self) -> None:
        if self.status and self._parse == self._parse_until_close:
            self.complete = True
        elif not self.complete:
            raise ConnectionResetError("the connection ended in the middle of an answer")

    def _parse_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_LIMIT:
                raise ProtocolError(f"the answer's head is longer than {HEAD_LIMIT} bytes")
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        self._buffer = self._buffer[end + 4 :]
        status = _status(lines[0])
        if status >= 200:  # 1xx answers announce the real one
            self.status = status
            self.headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
            }
            self.reusable = lines[0].startswith("HTTP/1.1") and self.headers.get("connection", "").lower() != "close"
            self._choose_framing()
        return True

    def _choose_framing(self) -> None:
        if not self._has_body or self.status in (204, 304):
            self.complete = True
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._parse = self._parse_chunk_size
        elif "content-length" in self.headers:
            self._left = _length(self.headers["content-length"], 10)
            self._parse = self._parse_length
            self.complete = self._left == 0
        else:
            self.reusable = False
            self._parse = self._parse_until_close

    def _parse_length(self) -> bool:
        self._move()
        self.complete = self._left == 0
        return False

    def _parse_until_close(self) -> bool:
        self._ready.append(self._buffer)
        self._buffer = b""
        return False

    def _parse_chunk_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        self._left = _length(line.partition(";")[0].strip(), 16)
        self._parse = self._parse_chunk_data if self._left else self._parse_trailer
        return True

    def _parse_chunk_data(self) -> bool:
        if self._left:
            self._move()
        if self._left or len(self._buffer) < 2:
            return False
        if self._buffer[:2] != b"\r\n":
            raise ProtocolError("a chunk of the answer is longer than it says")
        self._buffer = self._buffer[2:]
        self._parse = self._parse_chunk_size
        return True

    def _parse_trailer(self) -> bool:
        line = self._line()
        self.complete = line == ""
        return line is not None

    def _move(self) -> None:
        """Hand out as much of the buffer as the current length covers."""
        if len(self._buffer) <= self._left:
            piece, self._buffer = self._buffer, b""
        else:
            piece, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
        self._left -= len(piece)
        self._ready.append(piece)

    def _line(self) -> str | None:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > _LINE_LIMIT:
                raise ProtocolError("a line of the answer's framing is too long")
            return None
        line = self._buffer[:end].decode("latin-1")
        self._buffer = self._buffer[end + 2 :]
        return line


def _status(line: str) -> int:
    parts = line.split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdigit() or len(parts[1]) != 3:
        raise ProtocolError(f"the answer is not HTTP: it begins with {line[:60]!r}")
    return int(parts[1])


def _length(text: str, base: int) -> int:
    try:
        value = int(text, base)
    except ValueError:
        value = -1
    if value < 0:
        raise ProtocolError(f"the answer's length {text[:40]!r} is not a number")
    return value
