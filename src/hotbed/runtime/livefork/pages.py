"""Which pages a process has of its own, and moving them, in bulk.

/proc/pid/pagemap has one word a page (Documentation/admin-guide/mm/pagemap.rst): its top byte says whether the page is
there and of what kind, the low bits where in memory it is. Two processes that share a page by a fork have equal words
for it, and then equal content, provably, for as long as neither runs. The kernel tells *where* only to a reader with
CAP_SYS_ADMIN; without it, equal words prove nothing and content has to be compared.

CAVEAT: process_vm_readv(2) pins what it reads, and since Linux 5.19 the kernel first gives the process its own copy
of each page that it shares with a fork (gup_must_unshare). That would undo what forks save, and hide the sharing that
we go by. So pages that are shared are read through /proc/pid/mem, which pins nothing and is half as fast.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import struct
from collections.abc import Sequence

from hotbed.guest import kernel
from hotbed.runtime.linux.memory import NR_PROCESS_VM_READV, NR_PROCESS_VM_WRITEV
from hotbed.runtime.livefork.maps import Mapping
from hotbed.runtime.livefork.runs import PAGE, Run, matching, union

_WORD = 8
_BLOCK = 64 * _WORD
_PLACE = (1 << 55) - 1
_IOVECS = 1024
# Top byte: 0x80 present, 0x40 swapped out, 0x20 a file's (or shared) page.
_SHARED = re.compile(b"[" + b"".join(b"\\x%02x" % byte for byte in range(0x80, 0xA0, 2)) + b"]+")
_OWN = re.compile(b"[\\x80-\\x9f\\xc0-\\xdf\\x40-\\x5f]+")


class Pagemap:
    """One process's pagemap."""

    def __init__(self, pid: int) -> None:
        self._fd = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)

    def __enter__(self) -> Pagemap:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        os.close(self._fd)

    def words(self, start: int, end: int) -> bytes:
        """The words of these pages."""
        size = (end - start) // PAGE * _WORD
        data = os.pread(self._fd, size, start // PAGE * _WORD)
        while len(data) < size:
            more = os.pread(self._fd, size - len(data), start // PAGE * _WORD + len(data))
            if not more:
                raise OSError(f"pagemap ends before {end:#x}")
            data += more
        return data


def places_are_visible() -> bool:
    """Whether the kernel tells this process where pages are."""
    probe = mmap.mmap(-1, PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        probe[0] = 1
        address = ctypes.addressof(ctypes.c_char.from_buffer(probe))
        with Pagemap(os.getpid()) as pagemap:
            word = int.from_bytes(pagemap.words(address, address + PAGE), "little")
    finally:
        del address
    return word & _PLACE != 0


def own(pagemap: Pagemap, mappings: Sequence[Mapping]) -> list[Run]:
    """The pages that hold something of the process's own: written, anonymous, here or swapped out."""
    found: list[Run] = []
    for mapping in mappings:
        marks = pagemap.words(mapping.start, mapping.end)[_WORD - 1 :: _WORD]
        found.extend(matching(_OWN, marks, mapping.start))
    return found


def shared(pagemap: Pagemap, runs: Sequence[Run]) -> list[Run]:
    """Of these pages, those that other processes have too."""
    found: list[Run] = []
    for start, end in runs:
        found.extend(matching(_SHARED, pagemap.words(start, end)[_WORD - 1 :: _WORD], start))
    return found


def unlike(pagemap: Pagemap, other: Pagemap, runs: Sequence[Run]) -> list[Run]:
    """Of these pages, those that the other process does not have the very same of. Needs visible places."""
    found: list[Run] = []
    for start, end in runs:
        mine, theirs = pagemap.words(start, end), other.words(start, end)
        for block in range(0, len(mine), _BLOCK):
            if mine[block : block + _BLOCK] != theirs[block : block + _BLOCK]:
                found.extend(_unlike_words(mine[block : block + _BLOCK], theirs[block : block + _BLOCK], start, block))
    return union(found)


def _unlike_words(mine: bytes, theirs: bytes, start: int, offset: int) -> list[Run]:
    first = start + offset // _WORD * PAGE
    words = zip(struct.iter_unpack("Q", mine), struct.iter_unpack("Q", theirs), strict=True)
    return [(first + index * PAGE, first + (index + 1) * PAGE) for index, (one, two) in enumerate(words) if one != two]


def address_of(buffer: mmap.mmap) -> int:
    """Where a writable map of ours is."""
    view = ctypes.c_char.from_buffer(buffer)
    try:
        return ctypes.addressof(view)
    finally:
        del view


def fetch(pid: int, runs: Sequence[Run], target: int) -> None:
    """Copy these pages of a process, one after another, to an address of ours."""
    _transfer(NR_PROCESS_VM_READV, pid, runs, target)


def store(pid: int, runs: Sequence[Run], source: int) -> None:
    """The reverse. The pages must be writable there."""
    _transfer(NR_PROCESS_VM_WRITEV, pid, runs, source)


def _transfer(number: int, pid: int, runs: Sequence[Run], local: int) -> None:
    for first in range(0, len(runs), _IOVECS):
        batch = runs[first : first + _IOVECS]
        size = sum(end - start for start, end in batch)
        there = b"".join(struct.pack("QQ", start, end - start) for start, end in batch)
        moved = 0
        while moved < size:  # one call moves at most 2 GiB
            got = kernel.call(number, pid, struct.pack("QQ", local + moved, size - moved), 1, there, len(batch))
            if got == size - moved:
                break
            there, batch = _rest(batch, got)
            moved += got
        local += size


def _rest(batch: Sequence[Run], done: int) -> tuple[bytes, list[Run]]:
    left: list[Run] = []
    for start, end in batch:
        skipped = min(done, end - start)
        done -= skipped
        if start + skipped < end:
            left.append((start + skipped, end))
    if done or not left:
        raise OSError("a transfer of memory went wrong")
    return b"".join(struct.pack("QQ", start, end - start) for start, end in left), left
