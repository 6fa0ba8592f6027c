"""The runner's account is taken when it adds up, and never believed beyond that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hotbed.guest.agent.orderlog import OrderLog


@pytest.fixture
def log() -> Iterator[OrderLog]:
    """An empty log."""
    made = OrderLog()
    yield made
    made.close()


def test_runs_are_merged_and_checked_against_what_arrived(log: OrderLog) -> None:
    """Stream 1 is stdout."""
    for bit, count in ((0, 3), (0, 4), (1, 5), (0, 1)):
        log.note(bit, count)

    assert log.runs(8, 5) == [(1, 7), (2, 5), (1, 1)]
    assert log.runs(9, 5) is None


def test_stderr_first_is_no_run_of_stdout(log: OrderLog) -> None:
    """The first entry exists before anything was written."""
    log.note(1, 2)
    log.note(0, 2)

    assert log.runs(2, 2) == [(2, 2), (1, 2)]


def test_a_full_log_gives_up(log: OrderLog) -> None:
    """It does not write past its end."""
    for number in range(20_000):
        log.note(number % 2, 1)

    assert log.runs(10_000, 10_000) is None


def test_the_end_is_announced_once_it_is_there(log: OrderLog) -> None:
    """An exit code of 0 is an announcement too."""
    assert log.ending() is None

    log.announce(0, 123, 456)

    assert log.ending() == (0, 123, 456)


def test_a_garbled_log_is_harmless(log: OrderLog) -> None:
    """The guest can write to it whatever it likes."""
    for place in range(len(log.words)):
        log.words[place] = 2**64 - 1

    ending = log.ending()
    assert log.runs(1, 1) is None
    assert ending is not None and 0 <= ending[0] <= 255
