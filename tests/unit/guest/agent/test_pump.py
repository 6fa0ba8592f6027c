"""stdin is fed without waiting for its reader."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hotbed.guest.agent.loop import Loop
from hotbed.guest.agent.pump import Pump, pipe_with


@pytest.fixture
def loop() -> Iterator[Loop]:
    """A loop that is closed again."""
    made = Loop()
    yield made
    made.close()


def test_all_of_it_arrives_and_then_the_end(loop: Loop) -> None:
    """More than a pipe holds."""
    data = os.urandom(500_000)
    end, _ = pipe_with(loop, data, keep_open=False)
    got = b""
    while chunk := os.read(end, 1 << 16):
        got += chunk
        if len(got) < len(data):
            loop.turn()
    os.close(end)

    assert got == data


def test_more_can_be_fed_until_the_end(loop: Loop) -> None:
    """In the order it came."""
    end, pump = pipe_with(loop, b"a", keep_open=True)
    pump.feed(b"b")
    pump.end()
    pump.feed(b"too late")

    assert os.read(end, 10) == b"ab"
    assert os.read(end, 10) == b""
    os.close(end)


def test_what_came_with_the_request_is_not_told_as_fed(loop: Loop) -> None:
    """However much of it still waits when the first is fed."""
    fed: list[int] = []
    end, pump = pipe_with(loop, b"a" * 100_000, keep_open=True)
    pump.on_fed = fed.append
    pump.feed(b"b" * 1000)
    got = os.read(end, 1 << 20)
    loop.turn()
    got += os.read(end, 1 << 20)
    os.close(end)
    pump.close()

    assert (len(got), sum(fed)) == (101_000, 1000)


def test_the_mark_of_the_end_is_not_told_as_fed(loop: Loop) -> None:
    """Nobody fed it: the node ends whoever says that more was read than it sent."""
    fed: list[int] = []
    end, writer = os.pipe2(os.O_NONBLOCK)
    pump = Pump(loop, end_mark=b"\x04")
    pump.take(writer)
    pump.on_fed = fed.append
    pump.feed(b"ab")
    pump.end()
    pump.feed(b"too late")

    assert (os.read(end, 10), sum(fed)) == (b"ab\x04", len(b"abtoo late"))
    pump.close()
    os.close(end)


def test_a_reader_that_left_is_no_error(loop: Loop) -> None:
    """What was to be read is dropped."""
    end, pump = pipe_with(loop, b"x" * 500_000, keep_open=True)
    os.close(end)
    loop.turn()
    pump.feed(b"y")
    pump.close()
    pump.close()
