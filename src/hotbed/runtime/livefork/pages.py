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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hotbed.guest import kernel
from hotbed.runtime.linux.memory import NR_PROCESS_VM_READV, NR_PROCESS_VM_WRITEV
from hotbed.runtime.livefork.maps import Mapping
from hotbed.runtime.livefork.runs import PAGE, Run, matching, minus, union

_WORD = 8
_NOTHING_OR_ALL = bytes([0]) + b"\xff" * 255
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


@dataclass(frozen=True, slots=True)
class Census:
    """A process's own pages: all; of these, those that the other process has not the very same of; of *these*, shared.

    `strangers` is None where places cannot be seen.
    """

    own: list[Run]
    strangers: list[Run] | None
    shared: list[Run]

    def without(self, gone: list[Run]) -> Census:
        """What is left when these addresses have been unmapped or mapped anew."""
        if not gone:
            return self
        strangers = None if self.strangers is None else minus(self.strangers, gone)
        return Census(minus(self.own, gone), strangers, minus(self.shared, gone))


def census(pagemap: Pagemap, mappings: Iterable[Mapping], other: Pagemap | None) -> Census:
    """Count the pages of private mappings that hold something written: anonymous, here or swapped out."""
    found: list[Run] = []
    strangers: list[Run] = []
    shared: list[Run] = []
    for start, end in union(mapping.run for mapping in mappings):
        words = pagemap.words(start, end)
        marks = words[_WORD - 1 :: _WORD]
        mine = list(matching(_OWN, marks, start))
        if not mine:
            continue
        found += mine
        if other is not None:
            theirs = other.words(start, end)
            if theirs == words:
                continue
            marks = _without_equal(words, theirs, marks)
            strangers += matching(_OWN, marks, start)
        shared += matching(_SHARED, marks, start)
    return Census(found, strangers if other is not None else None, shared)


def _without_equal(mine: bytes, theirs: bytes, marks: bytes) -> bytes:
    """The marks with those of pages that are the same in both taken out.

    A page at a time would be a loop of Python for each page of a heap, so all at once: as very long numbers.
    """
    differ = (_number(mine) ^ _number(theirs)).to_bytes(len(mine), "little")
    folded = 0
    for place in range(_WORD):
        folded |= _number(differ[place::_WORD])
    mask = folded.to_bytes(len(marks), "little").translate(_NOTHING_OR_ALL)
    return (_number(mask) & _number(marks)).to_bytes(len(marks), "little")


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def address_of(buffer: mmap.mmap) -> int:
    """Where a writable map of ours is."""
    view = ctypes.c_char.from_buffer(buffer)
    try:
        return ctypes.addressof(view)
    finally:
        del view


Part = tuple[Run, int]  # addresses there, address here


def fetch(pid: int, parts: Sequence[Part]) -> None:
    """Copy pages of a process to addresses of ours."""
    _transfer(NR_PROCESS_VM_READV, pid, parts)


def store(pid: int, parts: Sequence[Part]) -> None:
    """The reverse. The pages must be writable there."""
    _transfer(NR_PROCESS_VM_WRITEV, pid, parts)


def _transfer(number: int, pid: int, parts: Sequence[Part]) -> None:
    for first in range(0, len(parts), _IOVECS):
        batch: Sequence[Part] = parts[first : first + _IOVECS]
        while batch:  # one call moves at most 2 GiB
            here = b"".join(struct.pack("QQ", address, end - start) for (start, end), address in batch)
            there = b"".join(struct.pack("QQ", start, end - start) for (start, end), _ in batch)
            moved = kernel.call(number, pid, here, len(batch), there, len(batch))
            if not moved:
                raise OSError(f"no byte of process {pid} could be moved")
            batch = _rest(batch, moved)


def _rest(batch: Sequence[Part], done: int) -> list[Part]:
    left: list[Part] = []
    for (start, end), address in batch:
        skipped = min(done, end - start)
        done -= skipped
        if start + skipped < end:
            left.append(((start + skipped, end), address + skipped))
    return left
