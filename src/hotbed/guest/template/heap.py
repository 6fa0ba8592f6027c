"""Leaves a template's heap without gaps, so that what a fork makes lies close together.

pymalloc serves each size of block from pools. A pool that was full once and has lost some blocks hands those out first,
so a fork's objects would be strewn over the gaps that imports and rehearsals left: a page fault, and a copied page, for
nearly each of them. With the gaps filled, they come one after the other from pools that hold nothing else.
"""

from __future__ import annotations

import gc
import sys
from typing import Callable, List

from .. import kernel

_STEP, _LARGEST = 16, 512  # the block sizes of Objects/obmalloc.c
_POOL = 16 << 10 if sys.version_info >= (3, 10) else 4 << 10
_POOL_HEADER = 48
_MOST_BYTES = 16 << 20  # of one size: gaps that imports of a large library left are more than a megabyte
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
    """Take blocks until a whole pool of them came in one piece: it was a fresh one, and goes back."""
    make = _maker(size)
    whole = (_POOL - _POOL_HEADER) // size
    taken: List[object] = []
    run = last = 0
    while run < whole:
        if len(taken) * size > _MOST_BYTES:  # some other allocator: there are no pools to fill
            return 0
        block = make()
        taken.append(block)
        run = run + 1 if id(block) == last + size else 1
        last = id(block)
    del taken[len(taken) - whole :]
    _fillers.extend(taken)
    return len(taken) * size


def _maker(size: int) -> Callable[[], object]:
    """Makes objects that take just such a block, and of whose kind the interpreter keeps no spare ones."""
    if size == _STEP:
        return object
    if size == 2 * _STEP:
        return lambda: _LARGEST << 40
    return lambda: bytes(size - _EMPTY)
