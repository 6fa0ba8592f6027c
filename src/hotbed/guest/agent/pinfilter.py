"""The seccomp filter of a pinned process: which calls stop until the supervisor has answered.

It refuses nothing. Calls of another architecture pass: the template's filter has its word on them. Arguments narrow
what is stopped as far as a filter can see, because each stop costs some fifteen microseconds: it sees numbers and
flags, never a path or the timeout behind a pointer.
"""

from __future__ import annotations

import struct
from typing import List, Sequence, Tuple

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
_ARCH_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ABOVE, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x25, 0x45, 0x54, 0x06
_NUMBER, _ARCH, _POINTER, _ARGUMENTS = 0, 4, 8, 16  # offsets in struct seccomp_data
_ARCH_SET_FS = 0x1002
_NOT_PLAIN = 0o1 | 0o100 | 0o200000 | 0o10000000  # O_WRONLY, O_CREAT, O_DIRECTORY, O_PATH
PIPE_BYTES = 4096  # what one read of a random device gets from its pipe
_FUTEX_COMMAND, _FUTEX_WAIT, _FUTEX_WAIT_BITSET = 0x7F, 0, 9

Instruction = Tuple[int, int, int, int]
_STOP: List[Instruction] = [(_RETURN, 0, 0, NOTIFY)]
_PASS: List[Instruction] = [(_RETURN, 0, 0, ALLOW)]


def _low(argument: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * argument)


def _high(argument: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * argument + 4)


def _plain_open(flags: int) -> List[Instruction]:
    """An open that may be reading a random device."""
    return [_low(flags), (_ANY_BIT, 1, 0, _NOT_PLAIN), *_STOP, *_PASS]


def _large_read_of_stdin() -> List[Instruction]:
    return [_low(0), (_EQUAL, 0, 3, 0), _low(2), (_ABOVE, 0, 1, PIPE_BYTES), *_STOP, *_PASS]


def _with_pointer(argument: int) -> List[Instruction]:
    """A call whose timeout is behind a pointer that is not NULL."""
    return [_low(argument), (_EQUAL, 0, 2, 0), _high(argument), (_EQUAL, 1, 0, 0), *_STOP, *_PASS]


def _with_milliseconds(argument: int) -> List[Instruction]:
    """A call whose timeout is a C int above 0: not negative, which is no timeout."""
    return [_low(argument), (_EQUAL, 2, 0, 0), (_AT_LEAST, 1, 0, 0x80000000), *_STOP, *_PASS]


def _timed_futex() -> List[Instruction]:
    waits = _with_pointer(3)
    command = [_low(1), (_AND, 0, 0, _FUTEX_COMMAND), (_EQUAL, 2, 0, _FUTEX_WAIT), (_EQUAL, 1, 0, _FUTEX_WAIT_BITSET)]
    return command + _PASS + waits


_RANDOMNESS: Sequence[Tuple[int, List[Instruction]]] = (
    (318, _STOP),  # getrandom
    (158, [_low(0), (_EQUAL, 0, 1, _ARCH_SET_FS), *_STOP, *_PASS]),  # arch_prctl
    (257, _plain_open(2)),  # openat
    (2, _plain_open(1)),  # open
    (437, _STOP),  # openat2
    (0, _large_read_of_stdin()),  # read
    (273, _STOP),  # set_robust_list, which a forked process calls first
)
_TIME: Sequence[Tuple[int, List[Instruction]]] = (
    (228, _STOP),  # clock_gettime
    (96, _STOP),  # gettimeofday
    (201, _STOP),  # time
    (35, _STOP),  # nanosleep
    (230, _STOP),  # clock_nanosleep
    (202, _timed_futex()),
    (7, _with_milliseconds(2)),  # poll
    (232, _with_milliseconds(3)),  # epoll_wait
    (281, _with_milliseconds(3)),  # epoll_pwait
    (271, _with_pointer(2)),  # ppoll
    (23, _with_pointer(4)),  # select
    (270, _with_pointer(4)),  # pselect6
    (441, _with_pointer(3)),  # epoll_pwait2
    (128, _with_pointer(2)),  # rt_sigtimedwait
)


def _made_at(address: int) -> List[Instruction]:
    """A call that is made by this instruction passes."""
    low, high = address & 0xFFFFFFFF, address >> 32
    here = [(_LOAD, 0, 0, _POINTER), (_EQUAL, 0, 3, low), (_LOAD, 0, 0, _POINTER + 4), (_EQUAL, 0, 1, high)]
    return here + _PASS


def build(level: str, passing: Sequence[Tuple[int, int]] = ()) -> bytes:
    """The filter of a level, `rng` or `full`, as an array of struct sock_filter.

    `passing` are calls, by number and the address behind their instruction, that nobody needs to see.
    """
    program: List[Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCH_X86_64),
        *_PASS,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32_BIT),
        *_PASS,
    ]
    for number, body in (*_RANDOMNESS, *(_TIME if level == "full" else ())):
        known = [step for call, address in passing if call == number for step in _made_at(address)]
        program.append((_EQUAL, 0, len(known) + len(body), number))
        program += known + body
    program += _PASS
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)
