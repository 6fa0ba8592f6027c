"""Pages kept: bytes of a set of runs, in memory of ours that no process of a sandbox can reach."""

from __future__ import annotations

import bisect
import ctypes
import mmap
import os
from collections.abc import Iterator, Sequence

from hotbed.runtime.livefork import pages
from hotbed.runtime.livefork.arena import Arena
from hotbed.runtime.livefork.runs import PAGE, Run, both, minus

_ROW = 16  # pages compared at once before they are looked at one by one


class Image:
    """The pages of these runs. Closed with `close`."""

    def __init__(self, runs: Sequence[Run], arena: Arena | None = None) -> None:
        self.runs = tuple(runs)
        self._starts = [start for start, _ in runs]
        self._offsets: list[int] = []
        offset = 0
        for start, end in runs:
            self._offsets.append(offset)
            offset += end - start
        self.size = offset
        self._arena = arena or Arena(0)
        self._memory: mmap.mmap | None = self._arena.take(offset)
        self.address = pages.address_of(self._memory)

    @classmethod
    def of(cls, pid: int, runs: Sequence[Run], closed: Sequence[Run], arena: Arena | None = None) -> Image:
        """These pages of a stopped process. `closed`: it may not read them itself, or shares them (see `pages`)."""
        image = cls(runs, arena)
        try:
            shut = both(runs, closed)
            pages.fetch(pid, list(image.parts(minus(runs, shut) if shut else runs)))
            image._force(pid, shut, os.O_RDONLY)
        except OSError:
            image.close()
            raise
        return image

    def close(self) -> None:
        """Give the memory back. Idempotent."""
        memory, self._memory = self._memory, None
        if memory is not None:
            self._arena.give(memory)

    def parts(self, runs: Sequence[Run]) -> Iterator[tuple[Run, int]]:
        """These runs, all of them ours, cut so that each part lies in one piece at the address given with it."""
        for start, end in runs:
            while start < end:
                index = bisect.bisect_right(self._starts, start) - 1
                own_start, own_end = self.runs[index]
                stop = min(end, own_end)
                yield (start, stop), self.address + self._offsets[index] + start - own_start
                start = stop

    def store(self, pid: int, runs: Sequence[Run], closed: Sequence[Run]) -> None:
        """Write these pages, all of them ours, into a process that we trace. `closed`: it may not write them itself."""
        shut = both(runs, closed)
        pages.store(pid, list(self.parts(minus(runs, shut) if shut else runs)))
        self._force(pid, shut, os.O_WRONLY)

    def _force(self, pid: int, runs: Sequence[Run], way: int) -> None:
        """Through /proc/pid/mem, which asks no rights of the pages themselves."""
        if not runs:
            return
        fd = os.open(f"/proc/{pid}/mem", way | os.O_CLOEXEC)
        view = memoryview(self._open())
        try:
            for (start, end), address in self.parts(runs):
                piece = view[address - self.address : address - self.address + end - start]
                moved = os.preadv(fd, [piece], start) if way == os.O_RDONLY else os.pwrite(fd, piece, start)
                piece.release()
                if moved != end - start:
                    raise OSError(f"process {pid} gave or took only {moved} bytes at {start:#x}")
        finally:
            view.release()
            os.close(fd)

    def bytes(self) -> bytes:
        """All of it."""
        return self._open()[: self.size]

    def _open(self) -> mmap.mmap:
        assert self._memory is not None, "this image was closed"
        return self._memory

    def unlike(self, other: Image, runs: Sequence[Run]) -> list[Run]:
        """Of these pages, which both have, those that differ."""
        found: list[Run] = []
        for (start, end), address in self.parts(runs):
            for (part, stop), theirs in other.parts([(start, end)]):
                found.extend(_unlike(part, stop, address + part - start, theirs))
        return found


def _unlike(start: int, end: int, mine: int, theirs: int) -> Iterator[Run]:
    row = _ROW * PAGE
    for first in range(0, end - start, row):
        count = min(row, end - start - first)
        if not _equal(mine + first, theirs + first, count):
            for page in range(first, first + count, PAGE):
                if not _equal(mine + page, theirs + page, PAGE):
                    yield start + page, start + page + PAGE


_compare = ctypes.CDLL(None).memcmp
_compare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def _equal(one: int, two: int, count: int) -> bool:
    return bool(_compare(one, two, count) == 0)
