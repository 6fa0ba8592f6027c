"""Sets of addresses as sorted, disjoint runs, and the few operations on them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

Run = tuple[int, int]
PAGE = 4096


def union(*sets: Iterable[Run]) -> list[Run]:
    """Every address that is in any of them; touching runs become one."""
    joined: list[Run] = []
    for start, end in sorted(run for one in sets for run in one):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif start < end:
            joined.append((start, end))
    return joined


def minus(these: Sequence[Run], those: Sequence[Run]) -> list[Run]:
    """Every address of `these` that is not in `those`. Both sorted and disjoint."""
    left: list[Run] = []
    first = 0
    for start, end in these:
        while first < len(those) and those[first][1] <= start:
            first += 1
        index = first
        while index < len(those) and those[index][0] < end:
            if those[index][0] > start:
                left.append((start, those[index][0]))
            start = max(start, those[index][1])
            index += 1
        if start < end:
            left.append((start, end))
    return left


def both(these: Sequence[Run], those: Sequence[Run]) -> list[Run]:
    """Every address that is in both. Sorted and disjoint, as these are."""
    found: list[Run] = []
    first = 0
    for start, end in these:
        while first < len(those) and those[first][1] <= start:
            first += 1
        index = first
        while index < len(those) and those[index][0] < end:
            other_start, other_end = those[index]
            found.append((max(start, other_start), min(end, other_end)))
            index += 1
    return found


def size(runs: Iterable[Run]) -> int:
    """How many bytes."""
    return sum(end - start for start, end in runs)


def matching(pattern: re.Pattern[bytes], marks: bytes, base: int) -> Iterator[Run]:
    """The runs of pages whose marks, one byte a page from `base` on, match."""
    for found in pattern.finditer(marks):
        yield base + found.start() * PAGE, base + found.end() * PAGE
