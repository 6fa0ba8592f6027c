"""Puts large pages under what every fork maps and few change.

A page that a process has is an entry in a table. A fork copies the entries of the heap one by one and the end of the
fork takes each of them down again; those of libraries are not copied, so each fork faults on its way through the
interpreter. A large page, of 2 MiB, is one entry for the former, and is simply there for the latter.

*Libraries*: where one covers a whole large page without room that is written, its content is copied into a large page
of anonymous memory that takes its place, at its address. What was readable only is executable then: whatever runs in
a sandbox may map that for itself. *Heap*: the kernel moves the pages that are there together (MADV_COLLAPSE, Linux
6.1, whatever the host's setting for large pages is). A fork's first write splits its entry, not the memory: what lies
together is still copied and taken down by the run.

A kernel that refuses leaves everything as it was, and forks as they were.
"""

from __future__ import annotations

import ctypes
from typing import BinaryIO, Iterable, Iterator, List, NamedTuple, Tuple

from .. import kernel

PAGE, LARGE = 4096, 2 << 20
_PAGES = LARGE // PAGE
_HEAP_USED = _PAGES * 3 // 4  # of a large page; what is not there yet would take memory for nothing
_TEXT_USED = _PAGES // 4
_MOST_TEXT = 8  # large pages: an interpreter takes two. Nobody runs all of a library of hundreds

_PAGEMAP = "/proc/self/pagemap"  # there is none in some kernels
_NR_MMAP, _NR_MPROTECT, _NR_MUNMAP, _NR_MREMAP, _NR_MADVISE = 9, 10, 11, 25, 28
_READ, _WRITE, _EXECUTE = 1, 2, 4
_PRIVATE_ANONYMOUS = 0x22
_MAYMOVE_FIXED = 3
_HUGEPAGE, _COLLAPSE = 14, 25


class Span(NamedTuple):
    """A stretch of addresses, and what is there: a library's path, or "" for heap."""

    start: int
    end: int
    name: str
    executable: bool


def lay() -> int:
    """Put large pages wherever they fit; how many there are then. For a process with one thread."""
    try:
        heap, text = _places()
    except OSError:  # nobody says what is in memory
        return 0
    return sum(map(_collapse, heap)) + sum(map(_replace, text[:_MOST_TEXT]))


def _places() -> Tuple[List[int], List[int]]:
    """Where a large page of heap may be, and one of a library."""
    with open("/proc/self/maps") as maps, open(_PAGEMAP, "rb", buffering=0) as pagemap:
        found = list(spans(maps))
        heap = [at for span in found if not span.name for at in _whole(span) if _present(pagemap, at) >= _HEAP_USED]
        text = [at for span in found if span.executable for at in _whole(span) if _present(pagemap, at) >= _TEXT_USED]
    return heap, text


def spans(maps: Iterable[str]) -> Iterator[Span]:
    """Heap, and libraries where nobody writes to them, from lines of /proc/self/maps (man 5 proc_pid_maps)."""
    last = None
    for line in maps:
        place, rights, _, _, inode, *named = line.split(None, 5)
        start, end = (int(address, 16) for address in place.split("-"))
        name = named[0].rstrip("\n") if named else ""
        if rights == "rw-p" and inode == "0" and name in ("", "[heap]"):
            yield Span(start, end, "", False)
        elif rights in ("r--p", "r-xp") and inode != "0":
            executable = "x" in rights
            if last is not None and last.end == start and last.name == name:
                start, executable = last.start, executable or last.executable
            elif last is not None:
                yield last
            last = Span(start, end, name, executable)
    if last is not None:
        yield last


def _whole(span: Span) -> List[int]:
    """Where the large pages begin that lie in it entirely."""
    first = -(-span.start // LARGE) * LARGE
    return list(range(first, span.end - LARGE + 1, LARGE))


def _present(pagemap: BinaryIO, at: int) -> int:
    """How many of a large page's small ones are in memory and mapped (Documentation/admin-guide/mm/pagemap.rst)."""
    pagemap.seek(at // PAGE * 8)
    return sum(top >> 7 for top in pagemap.read(_PAGES * 8)[7::8])


def _collapse(at: int) -> bool:
    try:
        return kernel.call(_NR_MADVISE, at, LARGE, _COLLAPSE) == 0
    except OSError:
        return False


def _replace(at: int) -> bool:
    """Have a copy take the place of what is read and executed here. It may be the code that does so: it is the same."""
    try:
        copy = _aligned_room()
    except OSError:
        return False
    try:
        kernel.call(_NR_MADVISE, copy, LARGE, _HUGEPAGE)
        ctypes.memmove(copy, at, LARGE)
        kernel.call(_NR_MADVISE, copy, LARGE, _COLLAPSE)  # in case there was no large page to be had at once
        kernel.call(_NR_MPROTECT, copy, LARGE, _READ | _EXECUTE)
        kernel.call(_NR_MREMAP, copy, LARGE, LARGE, _MAYMOVE_FIXED, at)
        return True
    except OSError:
        kernel.call(_NR_MUNMAP, copy, LARGE)
        return False


def _aligned_room() -> int:
    """Memory for one large page, where a large page may be."""
    room = kernel.call(_NR_MMAP, 0, 2 * LARGE, _READ | _WRITE, _PRIVATE_ANONYMOUS, -1, 0)
    large = -(-room // LARGE) * LARGE
    for start, end in ((room, large), (large + LARGE, room + 2 * LARGE)):
        if start < end:
            kernel.call(_NR_MUNMAP, start, end - start)
    return large
