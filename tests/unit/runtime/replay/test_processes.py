"""Processes keep their names, and with them their bytes, whoever runs beside them."""

from __future__ import annotations

import os
import signal
import time

import pytest

from hotbed.runtime.replay.processes import identify
from tests.unit.runtime.replay.supervised import Supervised


def in_children(count: int, delays_s: tuple[float, ...] = ()) -> str:
    """What each of several children draws, in the order of their births."""
    pipes = []
    for index in range(count):
        source, sink = os.pipe()
        if os.fork() == 0:
            time.sleep(delays_s[index] if delays_s else 0)
            os.write(sink, os.urandom(4))
            os._exit(0)
        os.close(sink)
        pipes.append(source)
    return " ".join(os.read(source, 4).hex() for source in pipes)


def test_a_thread_s_process_is_known() -> None:
    """By its own number here, and its parent's."""
    found = identify(os.getpid())

    assert (found.pid, found.parent) == (os.getpid(), os.getppid())


@pytest.mark.slow
def test_children_draw_the_same_in_whatever_order_they_come(node: Supervised) -> None:
    """The scheduler decides who asks first; it must not decide what they get."""
    first, _ = node.run(lambda: in_children(4, (0.06, 0.04, 0.02, 0)))
    second, _ = node.run(lambda: in_children(4, (0, 0.02, 0.04, 0.06)))

    assert first == second
    assert len(set(first.split())) == 4


@pytest.mark.slow
def test_an_orphan_keeps_its_name(node: Supervised) -> None:
    """A daemon's parent is gone by the time it asks for anything."""

    def daemon() -> str:
        source, sink = os.pipe()
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(0.05)
                os.write(sink, os.urandom(8))
            os._exit(0)
        os.wait()
        return os.read(source, 8).hex()

    assert len({node.run(daemon)[0] for _ in range(3)}) == 1


@pytest.mark.slow
def test_a_fork_is_not_interrupted_by_the_end_of_another_child(node: Supervised) -> None:
    """A shell has a handler for SIGCHLD: a stopped fork would fail with EINTR, which is told as "cannot fork"."""

    def forks() -> int:
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for _ in range(60):
            if os.fork() == 0:
                os._exit(0)
        return 60

    assert node.run(forks)[0] == "60"


def test_a_fork_after_a_child_that_asked_for_nothing_is_still_the_second(node: Supervised) -> None:
    """Names count forks, not those who were heard of."""

    def second_child(busy_first: bool) -> str:
        if os.fork() == 0:
            if busy_first:
                os.urandom(1)
            os._exit(0)
        os.wait()
        return in_children(1)

    assert node.run(lambda: second_child(True))[0] == node.run(lambda: second_child(False))[0]
