"""What is kept of any amount of output, and in which order, without waiting for anybody."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.guest.agent import capture
from hotbed.guest.agent.loop import Loop

writes = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(min_size=1, max_size=40)), max_size=30)


def captured(chunks: list[tuple[int, bytes]], limit: int) -> capture.Kept:
    """A capture that was given these chunks."""
    made = capture.Capture(limit)
    for number, data in chunks:
        made.add(made.streams[number - 1], memoryview(data))
    return made.kept()


@given(writes, st.integers(0, 200))
def test_head_and_tail_are_kept_exactly(chunks: list[tuple[int, bytes]], limit: int) -> None:
    """The first half of the allowance and the last, of each stream."""
    kept = captured(chunks, limit)

    for number, got, total in ((1, kept.stdout, kept.stdout_total), (2, kept.stderr, kept.stderr_total)):
        whole = b"".join(data for stream, data in chunks if stream == number)
        assert total == len(whole)
        if len(whole) <= limit:
            assert got == whole
        else:
            assert got == whole[: limit - limit // 2] + (whole[-(limit // 2) :] if limit // 2 else b"")
    assert kept.truncated == (len(kept.stdout) < kept.stdout_total or len(kept.stderr) < kept.stderr_total)


@given(writes, st.integers(0, 60))
def test_the_order_is_that_of_the_kept_bytes(chunks: list[tuple[int, bytes]], limit: int) -> None:
    """As if the whole had been merged first and then lost the same bytes."""
    kept = captured(chunks, limit)

    lost = [(limit - limit // 2, total - limit // 2) for total in (kept.stdout_total, kept.stderr_total)]
    at, merged = [0, 0], []
    for number, data in chunks:
        for _ in data:
            place = at[number - 1]
            at[number - 1] += 1
            if at_end(lost[number - 1], place):
                merged.append(number)
    assert [number for number, count in kept.order for _ in range(count)] == merged
    assert all(first[0] != second[0] for first, second in zip(kept.order, kept.order[1:], strict=False))


def at_end(lost: tuple[int, int], place: int) -> bool:
    """Whether a byte is outside of the gap."""
    return not lost[0] <= place < lost[1]


def test_runs_are_bounded_and_keep_their_sums() -> None:
    """A program that alternates for ever must not fill our memory."""
    runs: list[tuple[int, int]] = []
    for number in range(100_000):
        runs = capture.appended(runs, 1 + number % 2, 3)

    assert len(runs) <= 5000
    assert [sum(count for stream, count in runs if stream == number) for number in (1, 2)] == [150_000, 150_000]
    assert runs[-1] == (2, 3)


@pytest.mark.parametrize(("count", "kept"), [(0, b""), (3, b"xyz"), (100, b"xyz")])
def test_last_words_of_a_short_stream(count: int, kept: bytes) -> None:
    """Over several chunks."""
    stream = capture.Stream(2, 100)
    stream.keep(memoryview(b"x"))
    stream.keep(memoryview(b"yz"))

    assert stream.last(count)[:count] == kept


def test_last_words_of_a_long_stream() -> None:
    """From the tail."""
    stream = capture.Stream(2, 10)
    stream.keep(memoryview(b"0123456789abc"))

    assert stream.last(3) == b"abc"


def test_reading_never_waits() -> None:
    """Nothing there, something there, the end."""
    made = capture.Capture(100)
    ends, outs = capture.pipes()
    made.attach(ends)

    assert made.read(made.streams[0]) == -1
    os.write(outs[0], b"abc")
    assert made.read(made.streams[0]) == 3
    os.close(outs[0])
    assert made.read(made.streams[0]) == 0
    for fd in (*ends, outs[1]):
        os.close(fd)


def test_drain_takes_what_is_there_and_tells_the_end() -> None:
    """A pipe that somebody still holds is not at its end."""
    made = capture.Capture(100)
    ends, outs = capture.pipes()
    made.attach(ends)
    for fd in outs:
        os.write(fd, b"x" * 60_000)
    os.close(outs[0])

    assert [made.drain(stream) for stream in made.streams] == [True, False]
    assert made.total() == 120_000
    for fd in (*ends, outs[1]):
        os.close(fd)


def test_lingering_pipes_are_emptied_and_closed_at_their_end() -> None:
    """A writer gets neither SIGPIPE nor a full pipe."""
    loop = Loop()
    lingering = capture.Lingering(loop)
    end, out = os.pipe2(os.O_NONBLOCK)
    lingering.add(end)
    for _ in range(5):
        os.write(out, b"x" * 60_000)
        loop.turn()
        loop.turn()
    os.close(out)
    while is_open(end):
        loop.turn()
    loop.close()


def test_lingering_pipes_rest_between_reads() -> None:
    """A daemon that floods must not keep the agent busy."""
    loop = Loop()
    lingering = capture.Lingering(loop)
    end, out = os.pipe2(os.O_NONBLOCK)
    lingering.add(end)
    begun = time.monotonic()
    turns = 0
    while time.monotonic() - begun < 0.1:
        try:
            os.write(out, b"x" * 4096)
        except BlockingIOError:
            pass
        loop.turn()
        turns += 1
    for fd in (end, out):
        os.close(fd)
    loop.close()

    assert turns < 40


def test_too_many_lingering_pipes_lose_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Descriptors are finite."""
    monkeypatch.setattr(capture, "_LINGERING_LIMIT", 2)
    loop = Loop()
    lingering = capture.Lingering(loop)
    pairs = [os.pipe2(os.O_NONBLOCK) for _ in range(3)]
    for end, _ in pairs:
        lingering.add(end)

    assert [is_open(end) for end, _ in pairs] == [False, True, True]
    for end, out in pairs[1:]:
        os.close(end)
        os.close(out)
    os.close(pairs[0][1])
    loop.close()


def is_open(fd: int) -> bool:
    """Whether a descriptor is open."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
