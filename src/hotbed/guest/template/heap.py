"""Leaves a template's heap without gaps, so that what a fork makes lies close together.

pymalloc serves each size of block from pools. A pool that was full once and has lost some blocks hands those out first,
so a fork's objects would be strewn over the gaps that imports and rehearsals left: a page fault, and a copied page, for
nearly each of them. With the gaps filled, they come one after the other from pools that hold nothing else.
"""

from __future__ import annotations

import gc
import itertools
import sys
from typing import Callable, List, Optional, Sequence

from .. import kernel

_STEP, _LARGEST = 16, 512  # the block sizes of Objects/obmalloc.c
_POOL = 16 << 10 if sys.version_info >= (3, 10) else 4 << 10
_POOL_HEADER = 48
_WHOLE_POOLS = 3  # worth of blocks that are taken before the first look: any two pools' worth holds one whole
_MOST_BYTES = 16 << 20  # of one size: gaps that imports of a large library left are more than a megabyte
_COMPLEX = 1j  # two floats: 32 bytes, where a result that is an int may lie in a larger block than it needs
_EMPTY = sys.getsizeof(b"")

_fillers: List[object] = []


def settle() -> None:
    """Make this process's heap one that forks can share. Nothing it holds now is collected any more."""
    gc.collect()
    fill_gaps()
    kernel.trim_heap()
    gc.freeze()
    gc.disable()


def fill_gaps() -> int:
    """Fill the free blocks of pools in use, for good; how many bytes that took."""
    return sum(_fill(size) for size in range(_STEP, _LARGEST + 1, _STEP))


def _fill(size: int) -> int:
    """Take blocks until a whole pool of them came in one piece: it was a fresh one, and goes back.

    They are looked at when many have been taken: to look takes blocks as well, of the size of an int.
    """
    make = _maker(size)
    count = _WHOLE_POOLS * ((_POOL - _POOL_HEADER) // size)
    taken: List[object] = []
    while len(taken) * size <= _MOST_BYTES:
        blocks = [make() for _ in itertools.repeat(None, count)]
        fresh = _whole_pool(blocks, size)
        taken += blocks[:fresh]
        if fresh is not None:
            _fillers.extend(taken)
            return len(taken) * size
        count *= 2
    return 0  # some other allocator: there are no pools to fill


def _whole_pool(blocks: Sequence[object], size: int) -> Optional[int]:
    """Where the first of so many blocks is that lie one after the other."""
    whole = (_POOL - _POOL_HEADER) // size
    run = last = 0
    for index, block in enumerate(blocks):
        run = run + 1 if id(block) == last + size else 1
        last = id(block)
        if run == whole:
            return index + 1 - whole
    return None


def _maker(size: int) -> Callable[[], object]:
    """Makes objects that take just such a block, and of whose kind the interpreter keeps no spare ones."""
    if size == _STEP:
        return object
    if size == 2 * _STEP:
        return lambda: -_COMPLEX
    return lambda: bytes(size - _EMPTY)
