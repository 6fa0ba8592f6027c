"""The filter stops what it should, and as little else as it can."""

from __future__ import annotations

import os
import struct

import pytest

from hotbed.guest.agent import pinfilter

ALLOW, NOTIFY = pinfilter.ALLOW, pinfilter.NOTIFY
X86_64 = 0xC000003E


SITE = 0x7FFFF7FEA2FA


def verdict(level: str, number: int, *arguments: int, arch: int = X86_64, at: int = 0) -> int:
    """What the filter says to a call made `at` an address, by interpreting it."""
    words = [word & (1 << 64) - 1 for word in (*arguments, *[0] * (6 - len(arguments)))]
    data = struct.pack("=iIQ6Q", number, arch, at, *words)
    program = list(struct.iter_unpack("HBBI", pinfilter.build(level, [(257, SITE)])))
    step = register = 0
    while True:
        code, yes, no, value = program[step]
        step += 1
        if code == 0x20:
            register = struct.unpack_from("=I", data, value)[0]
        elif code == 0x54:
            register &= value
        elif code == 0x06:
            return int(value)
        else:
            holds = {
                0x15: register == value,
                0x35: register >= value,
                0x25: register > value,
                0x45: bool(register & value),
            }
            step += yes if holds[code] else no


@pytest.mark.parametrize(
    ("call", "stops"),
    [
        ((318, 0, 16, 0), True),  # getrandom
        ((158, 0x1002, 0x1234), True),  # arch_prctl(ARCH_SET_FS)
        ((158, 0x1003, 0x1234), False),  # arch_prctl(ARCH_GET_FS)
        ((257, -100, 0x1234, os.O_RDONLY | os.O_CLOEXEC), True),
        ((257, -100, 0x1234, os.O_RDWR), True),
        ((257, -100, 0x1234, os.O_WRONLY), False),
        ((257, -100, 0x1234, os.O_RDWR | os.O_CREAT), False),
        ((257, -100, 0x1234, os.O_DIRECTORY), False),
        ((2, 0x1234, os.O_RDONLY), True),
        ((0, 0, 0x1234, 8192), True),  # a large read of stdin
        ((0, 0, 0x1234, 4096), False),
        ((0, 3, 0x1234, 8192), False),
        ((273, 0x1234, 24), True),  # set_robust_list
        ((56, 17), False),  # clone
        ((1, 1, 0x1234, 8192), False),  # write
        ((39,), False),  # getpid
    ],
)
def test_level_rng_stops_what_brings_randomness(call: tuple[int, ...], stops: bool) -> None:
    """Each stop costs; each miss is a byte that nobody can replay."""
    assert verdict("rng", *call) == (NOTIFY if stops else ALLOW)
    assert verdict("full", *call) == (NOTIFY if stops else ALLOW)


@pytest.mark.parametrize(
    ("call", "stops"),
    [
        ((228, 0, 0x1234), True),  # clock_gettime
        ((96, 0x1234), True),  # gettimeofday
        ((35, 0x1234), True),  # nanosleep
        ((7, 0, 0, 100), True),  # poll
        ((7, 0, 0, 0), False),
        ((7, 0, 0, -1), False),
        ((232, 3, 0, 1, 5), True),  # epoll_wait
        ((232, 3, 0, 1, -1), False),
        ((23, 0, 0, 0, 0, 0), False),  # select without a timeout
        ((23, 0, 0, 0, 0, 1 << 40), True),
        ((202, 0, 0, 7, 0), False),  # futex wait without a timeout
        ((202, 0, 128, 7, 0x1234), True),  # FUTEX_WAIT_PRIVATE with one
        ((202, 0, 137, 7, 0x1234), True),  # FUTEX_WAIT_BITSET_PRIVATE with one
        ((202, 0, 129, 7, 0x1234), False),  # FUTEX_WAKE_PRIVATE
    ],
)
def test_level_full_stops_what_brings_time(call: tuple[int, ...], stops: bool) -> None:
    """And only then: level `rng` leaves time alone."""
    assert verdict("full", *call) == (NOTIFY if stops else ALLOW)
    assert verdict("rng", *call) == ALLOW


def test_other_architectures_are_the_template_filter_s_business() -> None:
    """Their numbers mean other calls."""
    assert verdict("full", 318, arch=0x40000003) == ALLOW
    assert verdict("full", 0x40000000 | 318) == ALLOW


@pytest.mark.parametrize(
    ("call", "at", "stops"),
    [
        ((257, -100, 0x1234, os.O_RDONLY), SITE, False),
        ((257, -100, 0x1234, os.O_RDONLY), SITE + 1, True),
        ((257, -100, 0x1234, os.O_RDONLY), SITE + (1 << 32), True),
        ((318, 0, 16, 0), SITE, True),
    ],
)
def test_a_call_that_needs_no_look_is_known_by_its_instruction(call: tuple[int, ...], at: int, stops: bool) -> None:
    """That call, from exactly there."""
    assert verdict("rng", *call, at=at) == (NOTIFY if stops else ALLOW)
