"""Memory of the keeper's that was used before: its pages are there, and a fault for each costs more than copying it."""

from __future__ import annotations

import bisect
import mmap

from hotbed.runtime.livefork.runs import PAGE

_KEPT_BYTES = 256 << 20
_WASTE_BYTES = 1 << 20


class Arena:
    """Hands out maps and takes them back. Whoever takes one writes all that it will read."""

    def __init__(self, kept_bytes: int = _KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._free: list[tuple[int, int, mmap.mmap]] = []  # by size
        self._number = 0

    def take(self, size: int) -> mmap.mmap:
        """A map of at least that size, if possible one that has been used."""
        index = bisect.bisect_left(self._free, (size,))
        if index < len(self._free) and self._free[index][0] <= 2 * size + _WASTE_BYTES:
            return self._free.pop(index)[2]
        return mmap.mmap(-1, max(PAGE, size), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def give(self, memory: mmap.mmap) -> None:
        """Take a map back; beyond what is kept, the smallest go."""
        self._number += 1
        bisect.insort(self._free, (len(memory), self._number, memory))
        while sum(size for size, _, _ in self._free) > self._kept_bytes:
            self._free.pop(0)[2].close()
