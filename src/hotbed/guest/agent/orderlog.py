"""In which order one process wrote to its two output pipes, kept in memory that it shares with the agent.

Two pipes carry no order between them. The warm runner knows it, so its stream objects note every write here; the agent
takes the log when its sums agree with the bytes that arrived (nobody else wrote) and else the order of arrival. The log
also tells that the program is over before the kernel has torn the process down, which is a good part of a short run.
Its content is the guest's word: it can garble its own output's order and its own exit code, as it could anyway.

Words of 64 bits: 0 the place of the last run, 1 one more than the exit code once the program is over, 2 its CPU time in
microseconds, 3 its peak memory in KiB, then runs of bytes, the lowest bit telling stderr from stdout.
"""

from __future__ import annotations

import mmap
from typing import List, Optional, Tuple

_SIZE = 1 << 16
_LAST, _EXIT, _CPU, _PEAK, _FIRST = range(5)

Run = Tuple[int, int]


class OrderLog:
    """Shared by the agent (reads) and one runner (writes)."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, _SIZE)
        self.words = memoryview(self._map).cast("Q")
        self.words[_LAST] = _FIRST

    def note(self, bit: int, count: int) -> None:
        """`count` bytes went to stdout (bit 0) or stderr (bit 1)."""
        words = self.words
        last = words[_LAST]
        run = words[last]
        if run & 1 == bit:
            words[last] = run + (count << 1)
        elif last + 1 < len(words):
            words[_LAST] = last + 1
            words[last + 1] = count << 1 | bit
        # else: full; the sums will not agree

    def announce(self, exit_code: int, cpu_us: int, peak_kib: int) -> None:
        """The program is over and everything it wrote is in its pipes."""
        self.words[_CPU] = cpu_us
        self.words[_PEAK] = peak_kib
        self.words[_EXIT] = exit_code + 1

    def ending(self) -> Optional[Tuple[int, int, int]]:
        """Exit code, CPU microseconds and peak KiB, once announced."""
        if self.words[_EXIT] == 0:
            return None
        return (self.words[_EXIT] - 1) & 0xFF, self.words[_CPU] & (1 << 53) - 1, self.words[_PEAK] & (1 << 53) - 1

    def runs(self, stdout_total: int, stderr_total: int) -> Optional[List[Run]]:
        """The runs as (1 or 2, bytes), if they add up to what arrived."""
        last = self.words[_LAST]
        if not _FIRST <= last < len(self.words):
            return None
        runs = [(1 + (word & 1), word >> 1) for word in self.words[_FIRST : last + 1].tolist() if word > 1]
        sums = [sum(count for stream, count in runs if stream == number) for number in (1, 2)]
        return runs if sums == [stdout_total, stderr_total] else None

    def close(self) -> None:
        """Unmap."""
        self.words.release()
        self._map.close()
