"""A layer's bytes on their way: read from a file, hashed, decompressed, hashed again; never more than a block held."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import os
import zlib
from typing import Any, Protocol

BLOCK = 1 << 18
_HEADER_LIMIT = 32 << 20
_ZSTD_WINDOW = 128 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class BadBlob(ValueError):
    """Bytes that are not what was announced: another digest, another length, or no such compression."""


class Readable(Protocol):
    """Whatever yields bytes in order."""

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes; none at the end."""
        ...


class Slice:
    """A part of a file, hashed as it is read."""

    def __init__(self, fd: int, offset: int, length: int) -> None:
        self._fd, self._at, self._end = fd, offset, offset + length
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes of it."""
        left = self._end - self._at
        data = os.pread(self._fd, min(left, BLOCK if size < 0 else size), self._at)
        if not data and left and size:
            raise BadBlob(f"the file ends {left} bytes early")
        self._at += len(data)
        self._hash.update(data)
        return data

    def digest(self) -> str:
        """The digest of what has been read."""
        return "sha256:" + self._hash.hexdigest()

    def drain(self) -> None:
        """Read to the end."""
        while self.read(BLOCK):
            pass


class Forward:
    """What a tar reader needs of a stream that only goes forward, hashed, and stopped at `most` bytes."""

    def __init__(self, source: Readable, most: int) -> None:
        self._source, self._most = source, most
        self._at = 0
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Exactly so many bytes, fewer at the end."""
        if not 0 <= size <= _HEADER_LIMIT:  # content is read by the block; headers say themselves how long they are
            raise BadBlob(f"the layer has a header of {size >> 20} MiB")
        found = self._some(size)
        if len(found) == size or not found:
            return found
        pieces, left = [found], size - len(found)
        while left:
            more = self._some(left)
            if not more:
                break
            pieces.append(more)
            left -= len(more)
        return b"".join(pieces)

    def _some(self, size: int) -> bytes:
        try:
            data = self._source.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise BadBlob(f"the layer cannot be decompressed: {error}") from None
        self._at += len(data)
        if self._at > self._most:
            raise TooMuch(f"it unpacks to more than {self._most >> 20} MiB")
        self._hash.update(data)
        return data

    def tell(self) -> int:
        """How far it has come."""
        return self._at

    def seek(self, target: int) -> int:
        """Go forward."""
        if target < self._at:
            raise BadBlob("the layer is no tar that can be read in one pass")
        while self._at < target:
            if not self._some(min(BLOCK, target - self._at)):
                break
        return self._at

    def drain(self) -> None:
        """Read to the end, past whatever pads the archive."""
        while self._some(BLOCK):
            pass

    def digest(self) -> str:
        """The digest of what has been read."""
        return "sha256:" + self._hash.hexdigest()


class TooMuch(ValueError):
    """More than an image may hold: bytes, or entries."""


def decompressed(source: Slice, head: bytes) -> Readable:
    """The stream's content. `head` is how the source begins. Raises `BadBlob` for a compression that we lack."""
    if head.startswith(_GZIP):
        return gzip.open(source, "rb")  # type: ignore[no-any-return, call-overload]  # it needs no more than read
    if head.startswith(_ZSTD):
        reader: Readable = (
            _zstd().ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(source, read_across_frames=True)
        )
        return _Zstd(reader)
    return source


class _Zstd:
    """Its errors are of a class of its own."""

    def __init__(self, reader: Readable) -> None:
        self._reader = reader

    def read(self, size: int = -1) -> bytes:
        try:
            return self._reader.read(size)
        except _zstd().ZstdError as error:
            raise BadBlob(f"the layer cannot be decompressed: {error}") from None


def _zstd() -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        raise BadBlob("the layer is compressed with zstd, and the zstandard package is not installed") from None
