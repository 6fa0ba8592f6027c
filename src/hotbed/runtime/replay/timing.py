"""Answers the calls that read the virtual clock or wait by it."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

from hotbed.runtime.linux import memory
from hotbed.runtime.linux.memory import Memory
from hotbed.runtime.linux.notify import Call
from hotbed.runtime.replay import calls
from hotbed.runtime.replay.clock import Clock

_SECOND = 10**9
_PAIR = struct.Struct("qq")  # struct timespec and struct timeval
_LONGEST = 1 << 62

PROCEED = None  # the kernel does it


class Timing:
    """One pinned rollout's time. A handler returns the call's value, or `PROCEED`; memory faults raise `OSError`."""

    def __init__(self, clock: Clock, memory: Memory) -> None:
        self._clock = clock
        self._memory = memory
        self._rewritten: dict[int, tuple[int, bytes, bytes]] = {}  # thread: (address, theirs, the kernel's)
        self.handlers: dict[int, Callable[[Call], int | None]] = {
            calls.CLOCK_GETTIME: self._clock_gettime,
            calls.GETTIMEOFDAY: self._gettimeofday,
            calls.TIME: self._time,
            calls.NANOSLEEP: self._nanosleep,
            calls.CLOCK_NANOSLEEP: self._clock_nanosleep,
            calls.FUTEX: self._futex,
            **dict.fromkeys(calls.WAITS, self._wait),
        }

    def handle(self, call: Call) -> int | None:
        """Answer one call."""
        if call.tid in self._rewritten:
            self._restore(call)
        return self.handlers[call.number](call)

    def _clock_gettime(self, call: Call) -> int | None:
        now = self._clock.read(call.tid, signed(call.arguments[0]))
        if now is None:
            return PROCEED
        self._memory.write(call.tid, call.arguments[1], _PAIR.pack(*divmod(now, _SECOND)))
        return 0

    def _gettimeofday(self, call: Call) -> int | None:
        now = self._clock.read(call.tid, calls.REALTIME) or 0
        if call.arguments[0]:
            seconds, rest = divmod(now, _SECOND)
            self._memory.write(call.tid, call.arguments[0], _PAIR.pack(seconds, rest // 1000))
        if call.arguments[1]:
            self._memory.write(call.tid, call.arguments[1], bytes(8))  # struct timezone: UTC
        return 0

    def _time(self, call: Call) -> int | None:
        seconds = (self._clock.read(call.tid, calls.REALTIME) or 0) // _SECOND
        if call.arguments[0]:
            self._memory.write(call.tid, call.arguments[0], struct.pack("q", seconds))
        return seconds

    def _nanosleep(self, call: Call) -> int | None:
        self._clock.sleep(call.tid, self._read(call, 0))
        return PROCEED

    def _clock_nanosleep(self, call: Call) -> int | None:
        clock_id, flags = signed(call.arguments[0]), call.arguments[1]
        when = self._read(call, 2)
        if flags & calls.TIMER_ABSTIME:
            remaining = self._to_kernel(call, call.arguments[2], clock_id, when)
            if remaining is None:
                return PROCEED
            when = remaining
        self._clock.sleep(call.tid, when)
        return PROCEED

    def _futex(self, call: Call) -> int | None:
        operation = call.arguments[1]
        when = self._read(call, 3)
        if operation & calls.FUTEX_COMMAND == calls.FUTEX_WAIT_BITSET:
            clock_id = calls.REALTIME if operation & calls.FUTEX_CLOCK_REALTIME else calls.MONOTONIC
            when = self._to_kernel(call, call.arguments[3], clock_id, when) or 0
        self._clock.wait(call.tid, when)
        return PROCEED

    def _wait(self, call: Call) -> int | None:
        place = calls.WAITS[call.number]
        if place.form == "ms":
            duration = signed(call.arguments[place.argument]) * 1_000_000
        else:
            duration = self._read(call, place.argument, 1000 if place.form == "timeval" else 1)
        if place.events is not None and call.arguments[place.events] == 0:
            self._clock.sleep(call.tid, duration)
        else:
            self._clock.wait(call.tid, duration)
        return PROCEED

    def _read(self, call: Call, argument: int, unit: int = 1) -> int:
        seconds, rest = _PAIR.unpack(self._memory.read(call.tid, call.arguments[argument], _PAIR.size))
        return min(max(0, int(seconds) * _SECOND + int(rest) * unit), _LONGEST)

    def _to_kernel(self, call: Call, address: int, clock_id: int, deadline: int) -> int | None:
        """Rewrite a deadline in the caller's memory; how long it is until then. None: not a clock of ours."""
        remaining = self._clock.remaining(clock_id, deadline)
        if remaining is None:
            return None
        theirs = self._memory.read(call.tid, address, _PAIR.size)
        real = time.clock_gettime_ns(clock_id) + remaining
        kernels = _PAIR.pack(*divmod(min(real, _LONGEST), _SECOND))
        memory.force(call.tid, [(address, kernels)])
        self._rewritten[call.tid] = (address, theirs, kernels)
        return remaining

    def _restore(self, call: Call) -> None:
        """Give the caller its own deadline back, unless the memory serves another purpose by now."""
        address, theirs, kernels = self._rewritten.pop(call.tid)
        if self._memory.read(call.tid, address, _PAIR.size) == kernels:
            memory.force(call.tid, [(address, theirs)])


def signed(word: int) -> int:
    """A register that holds a C int."""
    word &= 0xFFFFFFFF
    return word - (1 << 32) if word >> 31 else word
