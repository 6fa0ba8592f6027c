"""The node's end of a judge's channel, against judges that are none."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from hotbed.guest import frames
from hotbed.node.grading.judge import JudgeChannel, take_fd


def channel() -> tuple[JudgeChannel, socket.socket]:
    """A channel, and the end that a judge would have."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(5)
    return JudgeChannel(ours), theirs


def test_frames_come_in_order_and_the_end_is_told() -> None:
    """The reason is kept for the message."""

    async def scenario() -> None:
        judge, theirs = channel()
        for number in range(20):
            frames.send(theirs, {"op": "verdict", "n": number})
        theirs.close()
        found = [await judge.receive(5) for _ in range(21)]
        assert [frame and frame["n"] for frame in found] == [*range(20), None]
        assert judge.ended

    asyncio.run(scenario())


def test_silence_has_a_deadline() -> None:
    """Also one that has passed already."""

    async def scenario() -> None:
        judge, theirs = channel()
        assert await judge.receive(0.01) is None
        assert await judge.receive(-1) is None
        assert "in time" in judge.ended
        judge.close()
        judge.close()
        theirs.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("noise", [b"\xff" * 64, b"\0\0\0\2\0\0\0\0[]", b"\0\0\0\2\x7f\0\0\0{}"])
def test_what_is_no_frame_ends_the_channel(noise: bytes) -> None:
    """Its length may be a lie, its header no object, its body over the limit."""

    async def scenario() -> None:
        judge, theirs = channel()
        theirs.sendall(noise)
        assert await judge.receive(5) is None
        theirs.close()

    asyncio.run(scenario())


def test_a_judge_that_talks_without_end_waits() -> None:
    """What nobody has taken yet is bounded."""

    async def scenario() -> None:
        judge, theirs = channel()
        theirs.setblocking(False)
        data, sent = frames.pack({"op": "usage", "pad": "x" * 10_000}), 0
        for _ in range(1000):
            try:
                sent += theirs.send(data)
            except BlockingIOError:
                await asyncio.sleep(0)
        assert judge._frames.qsize() < 200
        assert sent < 1000 * len(data)
        first = await judge.receive(5)
        assert first is not None and first["op"] == "usage"
        judge.close()
        theirs.close()

    asyncio.run(scenario())


def test_descriptors_are_closed_whether_or_not_anybody_took_them() -> None:
    """A dead judge is heard of in `receive`."""

    async def scenario() -> None:
        judge, theirs = channel()
        one, other = socket.socketpair()
        fd = take_fd(one)
        judge.close()
        await judge.send({"op": "judge"}, b"", [fd], timeout_s=1)
        with pytest.raises(OSError):
            os.fstat(fd)
        theirs.close()
        other.close()

    asyncio.run(scenario())
