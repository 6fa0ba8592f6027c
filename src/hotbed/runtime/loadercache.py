"""The loader's cache, /etc/ld.so.cache, with a few more libraries in it.

An interpreter that is not below /usr has its libraries where no loader looks. LD_LIBRARY_PATH would say so, but to
every program: each would first try a dozen folders there for its own libraries. The cache is a file that every loader
opens anyway.

What is written is the format that glibc has had since 2.32 (sysdeps/generic/dl-cache.h): a header, entries in the
falling order of their names, strings, and extensions; all positions count from the beginning of the file.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("<20sIIB3xI12x")  # magic, entries, length of the strings, flags, where the extensions begin
_ENTRY = struct.Struct("<iIIIQ")  # flags, name, path, os version, hardware capabilities
_X86_64 = 0x0303  # FLAG_X8664_LIB64 | FLAG_ELF_LIBC6
_EXTENSIONS = 0xEAA42174
_SECTION = struct.Struct("<IIII")  # tag, flags, position, size
_HARDWARE_NAMES = 1  # the tag of an array of positions
_PART = re.compile(rb"\d+|.", re.DOTALL)


def with_libraries(cache: bytes, libraries: Mapping[str, str]) -> bytes | None:
    """The cache with these names and paths too, which win over others of their name; None if it is none we know."""
    try:
        return _extended(cache, libraries)
    except (struct.error, ValueError, IndexError):
        return None


def _extended(cache: bytes, libraries: Mapping[str, str]) -> bytes:
    magic, count, strings, flags, extensions = _HEADER.unpack_from(cache)
    if magic != _MAGIC:
        raise ValueError("another format")
    moved = len(libraries) * _ENTRY.size
    end = _HEADER.size + count * _ENTRY.size
    entries = []
    for kind, name, path, system, hardware in _ENTRY.iter_unpack(cache[_HEADER.size : end]):
        text = cache[name : cache.index(b"\0", name)]
        entries.append((text, (kind, name + moved, path + moved, system, hardware)))
    rest = bytearray(cache[end:])
    if extensions:
        _move(rest, extensions - end, end, moved)
    ours = []
    for name, path in libraries.items():
        at = end + moved + len(rest)
        rest += name.encode() + b"\0" + path.encode() + b"\0"
        ours.append((name.encode(), (_X86_64, at, at + len(name.encode()) + 1, 0, 0)))
    entries = sorted(
        ours + entries, key=lambda entry: order(entry[0]), reverse=True
    )  # stable: ours before their equals
    header = _HEADER.pack(magic, len(entries), strings, flags, extensions + moved if extensions else 0)
    return header + b"".join(_ENTRY.pack(*entry) for _, entry in entries) + rest


def _move(rest: bytearray, at: int, end: int, moved: int) -> None:
    """Positions inside the extensions, which begin `at` in what follows the entries' end."""
    magic, count = struct.unpack_from("<II", rest, at)
    if magic != _EXTENSIONS:
        raise ValueError("other extensions")
    for number in range(count):
        place = at + 8 + number * _SECTION.size
        tag, flags, position, size = _SECTION.unpack_from(rest, place)
        if tag == _HARDWARE_NAMES:
            for word in range(position - end, position - end + size, 4):
                struct.pack_into("<I", rest, word, struct.unpack_from("<I", rest, word)[0] + moved)
        _SECTION.pack_into(rest, place, tag, flags, position + moved, size)


def order(name: bytes) -> list[tuple[bool, int]]:
    """How a loader compares names: digits as numbers, which come after every other character."""
    return [(part.isdigit(), int(part) if part.isdigit() else part[0]) for part in _PART.findall(name)]
