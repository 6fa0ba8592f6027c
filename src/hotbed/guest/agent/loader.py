"""Where the dynamic loader makes system calls that can be nothing but its own.

At each exec the loader opens the program's libraries and registers its first thread. None of that is random, and each
stopped call costs. A filter sees where a call was made, and without address space randomization the loader lies at one
address in every program that uses it: the one at which it lies in this process. So its calls are told by the exact
addresses of their instructions, found by their code. A program that has other code exactly there, a static one with a
system call at the same place, would not be seen opening a random device there.
"""

from __future__ import annotations

import ctypes
from typing import List, Tuple

OPENAT, SET_ROBUST_LIST = 257, 273
_AT_BASE = 7  # where the kernel mapped the loader
_SYSCALL = b"\x0f\x05"
_NEARBY = 64  # from the number's load to the call itself
_libc = ctypes.CDLL(None)

Site = Tuple[int, int]  # a call's number, and the address behind its instruction, which is what a filter sees


def sites() -> List[Site]:
    """Those of this process's loader; none where there is no loader."""
    _libc.getauxval.restype = ctypes.c_ulong
    _libc.getauxval.argtypes = [ctypes.c_ulong]
    base = _libc.getauxval(_AT_BASE)
    start, code = _text_behind(base) if base else (0, b"")
    return [(number, start + at) for number in (OPENAT, SET_ROBUST_LIST) for at in behind_calls(code, number)]


def behind_calls(code: bytes, number: int) -> List[int]:
    """Offsets behind each `mov eax, number` and the `syscall` after it."""
    load = b"\xb8" + number.to_bytes(4, "little")
    found: List[int] = []
    at = -1
    while True:
        at = code.find(load, at + 1)
        if at < 0:
            return found
        call = code.find(_SYSCALL, at, at + _NEARBY)
        if call >= 0:
            found.append(call + len(_SYSCALL))


def _text_behind(base: int) -> Tuple[int, bytes]:
    """The executable part of the file that is mapped at `base`: its address, and its bytes."""
    inode = ""
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, mode, _, _, number = line.split(None, 5)[:5]
            start, end = (int(word, 16) for word in span.split("-"))
            if start == base:
                inode = number
            if inode and number == inode and "x" in mode:
                return start, ctypes.string_at(start, end - start)
    return 0, b""
