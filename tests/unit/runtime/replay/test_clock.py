"""The virtual clock moves by its own rules, whatever real time does."""

from __future__ import annotations

import time

import pytest

from hotbed.runtime.replay.clock import MONOTONIC_START_NS, Clock

EPOCH = 1_000_000 * 10**9
SECOND = 10**9


class RealTime:
    """A monotonic clock that moves when told to."""

    def __init__(self) -> None:
        self.now = 77 * SECOND

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> RealTime:
    """The kernel's time, in our hands."""
    clock = RealTime()
    monkeypatch.setattr(time, "monotonic_ns", clock)
    return clock


def test_each_reading_is_one_step_later(real: RealTime) -> None:
    """However long a program takes between two readings."""
    clock = Clock(EPOCH, 10)
    first = clock.read(1, 0)
    real.now += 5 * SECOND

    assert (first, clock.read(1, 0)) == (EPOCH + 10, EPOCH + 20)


def test_all_clocks_tell_of_the_same_time(real: RealTime) -> None:
    """Wall clock, uptime and CPU time differ in where they begin."""
    clock = Clock(EPOCH, 10)

    assert clock.read(1, 1) == MONOTONIC_START_NS + 10
    assert clock.read(1, 2) == 20
    assert clock.read(1, -6) == 30
    assert clock.read(1, 99) is None


def test_a_sleep_has_moved_the_clock_once_it_is_over(real: RealTime) -> None:
    """For everyone: a shell reads the time after its child has slept."""
    clock = Clock(EPOCH, 10)
    clock.sleep(1, 3 * SECOND)
    during = clock.read(2, 0)
    real.now += 3 * SECOND + 5

    assert (during, clock.read(2, 0)) == (EPOCH + 10, EPOCH + 3 * SECOND + 10)


def test_a_wait_that_ran_out_has_moved_the_clock_by_its_length(real: RealTime) -> None:
    """A loop that waits until a deadline must get there."""
    clock = Clock(EPOCH, 10)
    clock.wait(1, 2 * SECOND)
    real.now += 2 * SECOND + 40_000

    assert clock.read(1, 0) == EPOCH + 2 * SECOND + 10


def test_a_wait_that_an_event_ended_has_not_moved_the_clock(real: RealTime) -> None:
    """How soon the event came is not reproducible, so it must not show."""
    clock = Clock(EPOCH, 10)
    clock.wait(1, 2 * SECOND)
    real.now += SECOND
    woken = clock.read(1, 0)
    real.now += 9 * SECOND

    assert (woken, clock.read(1, 0)) == (EPOCH + 10, EPOCH + 20)


def test_a_deadline_is_as_far_away_as_the_clock_says() -> None:
    """It is handed to a kernel that knows another time."""
    clock = Clock(EPOCH, 10)

    assert clock.remaining(0, EPOCH + 500) == 500
    assert clock.remaining(1, MONOTONIC_START_NS - 1) == 0
    assert clock.remaining(99, 5) is None
