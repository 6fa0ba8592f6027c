"""The spool: where an entry is safe before its answer leaves.

A database commit takes a thread and a moment; the hot path has neither. So an entry is first appended to a file by one
`write`, which survives the death of this process (the kernel holds it), and a writer thread moves it into the database
afterwards. A segment of the spool is deleted when all its entries are committed; a start takes in what an earlier run
left. A record is its length, its CRC-32 and its bytes, so that a torn tail is told from a whole record.

The spool is not synced to the disk entry by entry: a power cut may lose the last moments, a killed node loses nothing.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

_HEAD = struct.Struct("!II")
SEGMENT_BYTES = 8 << 20


class Spool:
    """Appends records to numbered segments in a directory. `append` and `committed` may run on different threads."""

    def __init__(self, directory: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._number = max((_number(path) for path in segments(directory)), default=0)
        self._fd = -1
        self._size = 0
        self._outstanding: dict[int, int] = {}
        self._lock = threading.Lock()  # over `_outstanding` and which segment is open

    def append(self, record: bytes) -> int:
        """Write one record; the number of the segment it went to. Raises `OSError` when the disk refuses."""
        if self._fd < 0 or self._size >= self._segment_bytes:
            self._roll()
        self._write(_HEAD.pack(len(record), zlib.crc32(record)) + record)
        with self._lock:
            self._outstanding[self._number] = self._outstanding.get(self._number, 0) + 1
            return self._number

    def _write(self, data: bytes) -> None:
        """All of it or none: a torn record would hide those behind it."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)

    def committed(self, segment: int, count: int) -> None:
        """That many records of a segment are in the database. Deletes closed segments that are done."""
        with self._lock:
            self._outstanding[segment] -= count
            self._drop_if_done(segment, self._number)

    def _drop_if_done(self, segment: int, open_segment: int) -> None:
        if segment != open_segment and self._outstanding.get(segment) == 0:
            del self._outstanding[segment]
            self.path(segment).unlink(missing_ok=True)

    def close(self) -> None:
        """Close, and delete the last segment too if nothing of it is outstanding. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            if not self._outstanding.get(self._number):
                self.path(self._number).unlink(missing_ok=True)

    def _roll(self) -> None:
        """Go on in a new segment. Raises `OSError`, and stays in the old one, when there is no room for it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        fd = os.open(self.path(self._number + 1), flags, 0o600)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._size = fd, 0
        with self._lock:
            self._number += 1
            self._drop_if_done(self._number - 1, self._number)

    def path(self, number: int) -> Path:
        """Where a segment is."""
        return self._directory / f"{number:012d}.spool"


def segments(directory: Path) -> list[Path]:
    """The segments in a directory, oldest first."""
    return sorted(directory.glob("*.spool"))


def records(path: Path) -> Iterator[bytes]:
    """The whole records of a segment; ends at the first torn one."""
    data = path.read_bytes()
    offset = 0
    while offset + _HEAD.size <= len(data):
        length, check = _HEAD.unpack_from(data, offset)
        record = data[offset + _HEAD.size : offset + _HEAD.size + length]
        if len(record) != length or zlib.crc32(record) != check:
            return
        yield record
        offset += _HEAD.size + length


def _number(path: Path) -> int:
    return int(path.stem)
