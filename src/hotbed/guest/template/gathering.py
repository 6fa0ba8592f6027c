"""Puts the code that every fork runs side by side, before it is rehearsed.

A call writes to the head of the function's code object, its reference count. Imports strew these over the heap, a page
each, so every fork copied some seventy pages for seventy functions. Copies that are made one after the other share
them. The interpreter specialises the copies in place, so they have to be there before the rehearsals proper.
"""

from __future__ import annotations

import gc
import opcode
import sys
import types
from typing import Any, Callable, Dict, List

_POOLED = 512  # up to this, the blocks of each size lie in pools of their own (Objects/obmalloc.c)
_NOP = bytes((opcode.opmap["NOP"], 0))
_FRESH = 100_000  # bytes: more than any hole that imports leave, less than what has a mapping of its own
_LARGEST = 1 << 16
_MOST = 4 << 20
_EMPTY = sys.getsizeof(b"")

_fillers: List[object] = []


def gather(rehearse: Callable[[], object]) -> int:
    """Give every function that a rehearsal calls a copy of its code, in the order of the calls; how many there were."""
    called = _called(rehearse)
    users: Dict[types.CodeType, List[types.FunctionType]] = {code: [] for code in called}
    for thing in gc.get_objects():
        if type(thing) is types.FunctionType and thing.__code__ in users:
            users[thing.__code__].append(thing)
    _fill_holes()
    for code, functions in users.items():
        copy = _copy(code) if functions else code
        for function in functions:
            function.__code__ = copy
    return sum(bool(functions) for functions in users.values())


def _called(rehearse: Callable[[], object]) -> List[types.CodeType]:
    found: Dict[types.CodeType, None] = {}

    def note(frame: types.FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            found[frame.f_code] = None

    sys.setprofile(note)
    try:
        rehearse()
    finally:
        sys.setprofile(None)
    return list(found)


def _fill_holes() -> None:
    """Take what is free in the C library's heap, from large to small, for good: copies then come from its end."""
    end, size, taken = id(bytes(_FRESH)), _LARGEST, 0
    while size > _POOLED and taken < _MOST:  # another allocator may grow downwards
        block = bytes(size - _EMPTY)
        if id(block) < end:
            _fillers.append(block)
            taken += size
        else:
            size -= max(16, size // 16)


def _copy(code: types.CodeType) -> types.CodeType:
    """A copy with all that is nested in it, too large for a pool; where the instructions are elsewhere, as it is."""
    inner = tuple(_copy(each) if isinstance(each, types.CodeType) else each for each in code.co_consts)
    missing = max(0, _POOLED + 16 - sys.getsizeof(code)) if sys.version_info >= (3, 11) else 0
    return code.replace(co_consts=inner, co_code=code.co_code + _NOP * ((missing + 1) // 2))  # none comes to the end
