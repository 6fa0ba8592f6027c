"""How long a pool's client is held up."""

from __future__ import annotations

from collections.abc import Sequence

from hotbed.pools.stopwatch import EVERY_S, NEAR_S, Span, Stopwatch


class Clock:
    """Time as a test tells it."""

    now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def test_waits_are_told_as_spans_about_once_a_second() -> None:
    """What follows closely is one span, a wait within a wait is part of it, and nothing is told twice."""
    clock, told = Clock(), list[Span]()
    watch = Stopwatch(told.extend, clock=clock)
    for _ in range(3):
        with watch, watch:
            clock.now_s += 0.1
        clock.now_s += NEAR_S / 2
    clock.now_s += 0.2
    with watch:
        clock.now_s += EVERY_S

    first, second = told
    assert [round(number, 3) for number in first] == [1.575, 1.225, 0.3, 3]
    assert [round(number, 3) for number in second] == [1.0, 0.0, 1.0, 1]
    watch.flush()
    assert len(told) == 2


def test_what_is_left_is_told_at_the_end() -> None:
    """A pool that is closed soon has waited, too; one that never waited tells nothing."""
    told: list[Sequence[Span]] = []
    watch = Stopwatch(told.append)
    watch.flush()
    with watch:
        pass
    assert told == []
    watch.flush()

    [[span]] = told
    assert span[3] == 1
