"""Descriptors and deadlines are called back, and nobody who was forgotten."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial

import pytest

from hotbed.guest.agent.loop import OUT, Loop


@pytest.fixture
def loop() -> Iterator[Loop]:
    """A loop that is closed again."""
    made = Loop()
    yield made
    made.close()


def test_ready_descriptors_are_called_in_the_order_they_became_ready(loop: Loop) -> None:
    """This is what merges two output streams."""
    pairs = [os.pipe() for _ in range(4)]
    called: list[int] = []
    for number, (end, _) in enumerate(pairs):
        loop.watch(end, partial(called.append, number))
    for number in (2, 0, 3, 1):
        os.write(pairs[number][1], b"x")
    loop.turn()

    assert called == [2, 0, 3, 1]
    for pair in pairs:
        os.close(pair[0])
        os.close(pair[1])


def test_a_descriptor_forgotten_during_a_turn_is_not_called(loop: Loop) -> None:
    """Its owner has closed it."""
    first, second = os.pipe(), os.pipe()
    called: list[str] = []

    def forget_the_other() -> None:
        called.append("first")
        loop.unwatch(second[0])

    loop.watch(first[0], forget_the_other)
    loop.watch(second[0], lambda: called.append("second"))
    for pair in (first, second):
        os.write(pair[1], b"x")
    loop.turn()
    loop.unwatch(second[0])

    assert called == ["first"]
    for fd in (*first, *second):
        os.close(fd)


def test_deadlines_are_kept_in_order_and_on_time(loop: Loop) -> None:
    """To a few milliseconds."""
    called: list[str] = []
    begun = time.monotonic()
    loop.after(0.03, lambda: called.append("late"))
    loop.after(0.01, lambda: called.append("early"))
    loop.after(0.02, lambda: called.append("never")).cancel()
    while len(called) < 2:
        loop.turn()

    assert called == ["early", "late"]
    assert 0.03 <= time.monotonic() - begun < 0.2


def test_writable_descriptors_are_watched_too(loop: Loop) -> None:
    """For stdin."""
    end, out = os.pipe()
    called: list[int] = []
    loop.watch(out, lambda: called.append(1), OUT)
    loop.turn()

    assert called == [1]
    os.close(end)
    os.close(out)
