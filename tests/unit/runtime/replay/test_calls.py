"""The table of calls agrees with the filter that stops them."""

from __future__ import annotations

import struct

from hotbed.guest.agent import pinfilter
from hotbed.runtime.replay import calls


def compared(level: str) -> set[int]:
    """Every constant that the filter compares for equality."""
    return {value for code, _, _, value in struct.iter_unpack("HBBI", pinfilter.build(level)) if code == 0x15}


def test_every_call_that_is_answered_is_stopped() -> None:
    """And the other way round: a call that is stopped and not answered would hang."""
    randomness = {calls.GETRANDOM, calls.ARCH_PRCTL, calls.READ, calls.OPEN, calls.OPENAT, calls.OPENAT2}
    forks = {calls.SET_ROBUST_LIST}
    time = {calls.CLOCK_GETTIME, calls.GETTIMEOFDAY, calls.TIME, calls.NANOSLEEP, calls.CLOCK_NANOSLEEP, calls.FUTEX}

    assert randomness | forks <= compared("rng")
    assert randomness | forks | time | set(calls.WAITS) <= compared("full")
    assert not (time - {0}) & compared("rng")
