"""An exec's output and input are bounded by credit, at both ends."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.guest.credit import WINDOW, cost
from hotbed.guest.frames import FrameError, Header
from hotbed.runtime.running import ALLOWANCE, RunningExec

Said = list[tuple[Header, bytes]]


def running() -> tuple[RunningExec, Said]:
    """An exec and what is said to its agent."""
    said: Said = []
    return RunningExec("7", lambda header, body: said.append((header, body))), said


def test_what_the_reader_takes_is_given_back_as_credit() -> None:
    """By what it cost, a part of the window at a time."""

    async def run() -> Said:
        made, said = running()
        for _ in range(4):
            made.take({"op": "output", "fd": 1}, b"x" * (WINDOW // 4))
        made.take({"op": "output", "fd": 1}, b"")
        reading = made.pieces()
        for _ in range(5):
            await anext(reading)
        return said

    said = asyncio.run(run())
    assert [header for header, _ in said] == [{"op": "ack", "id": "7", "amount": cost(WINDOW // 4)}] * 4


def test_an_agent_that_sends_without_credit_is_none_of_ours() -> None:
    """What it may be ahead is bounded, whatever it says."""

    async def run() -> None:
        made, _ = running()
        with pytest.raises(FrameError, match="more output"):
            for _ in range(ALLOWANCE // 1000):
                made.take({"op": "output", "fd": 1}, b"x" * 1000)

    asyncio.run(run())


def test_feeding_waits_for_the_program_to_read() -> None:
    """Input on its way is bounded too."""

    async def run() -> None:
        made, said = running()
        feeding = asyncio.ensure_future(made.feed(b"x" * 3 * WINDOW))
        for _ in range(5):
            await asyncio.sleep(0)
        assert [len(body) for _, body in said] == [WINDOW]

        made.take({"op": "fed", "bytes": WINDOW}, b"")
        for _ in range(5):
            await asyncio.sleep(0)
        assert [len(body) for _, body in said] == [WINDOW] * 2 and not feeding.done()

        made.end()
        await feeding

    asyncio.run(run())


@pytest.mark.parametrize("count", [-1, 11, "1", None, True])
def test_input_is_taken_only_if_it_was_sent(count: object) -> None:
    """An agent may say anything."""

    async def run() -> None:
        made, _ = running()
        await made.feed(b"x" * 10)
        made.end_input()  # which is no byte
        with pytest.raises(FrameError, match="input"):
            made.take({"op": "fed", "bytes": count}, b"")

    asyncio.run(run())


def test_once_it_has_ended_nothing_is_said_any_more() -> None:
    """Its name may be another's by then."""

    async def run() -> Said:
        made, said = running()
        made.end()
        made.end()
        await made.feed(b"x")
        made.end_input()
        made.signal(2)
        made.resize(1, 1)
        made.kill()
        assert [piece async for piece in made.pieces()] == []
        return said

    assert asyncio.run(run()) == []


def test_controls_are_frames_of_its_name() -> None:
    """As the agent knows them."""

    async def run() -> Said:
        made, said = running()
        made.end_input()
        made.signal(15)
        made.resize(24, 80)
        made.kill()
        return said

    assert asyncio.run(run()) == [
        ({"op": "input", "id": "7"}, b""),
        ({"op": "signal", "id": "7", "signal": 15}, b""),
        ({"op": "resize", "id": "7", "size": [24, 80]}, b""),
        ({"op": "cancel", "id": "7"}, b""),
    ]
