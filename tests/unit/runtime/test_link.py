"""Frames over a socket whose other end lies, floods, stalls or goes away."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hotbed.guest.frames import Connection, FrameError, Header, pack
from hotbed.runtime import link
from hotbed.runtime.link import Link

Got = list[tuple[Header, bytes, list[int]]]


def linked(test: Callable[[Link, socket.socket, Got, list[str]], Awaitable[None]], body_limit: int = 1 << 20) -> None:
    """Run a test with a link, its other end, what came, and how it ended."""

    async def run() -> None:
        ours, theirs = socket.socketpair()
        got: Got = []
        ends: list[str] = []
        made = Link(ours, body_limit=body_limit, on_frame=lambda *frame: got.append(frame), on_end=ends.append)
        with theirs:
            await test(made, theirs, got, ends)
        made.end("over")
        for _, _, fds in got:
            link.close_all(fds)

    asyncio.run(run())


async def until(condition: Callable[[], Any]) -> None:
    """Let the loop turn until it holds."""
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.001)
    pytest.fail("it did not come")


def test_frames_with_descriptors_do_not_wait_for_each_other() -> None:
    """The kernel gives them one at a time, and a busy loop may take long to come round."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        reader, writer = os.pipe()
        peer = Connection(theirs)
        for number in range(5):
            peer.send({"op": str(number)}, fds=[reader])
        os.close(reader)
        os.close(writer)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert [header["op"] for header, _, _ in got] == list("01234")

    linked(test)


def test_frames_come_with_their_descriptors() -> None:
    """In order, each with what was sent with it."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        reader, writer = os.pipe()
        peer = Connection(theirs)
        peer.send({"op": "one"}, b"x", [reader])
        peer.send({"op": "two"})
        os.close(reader)
        os.close(writer)
        await until(lambda: len(got) == 2)

        assert [(header["op"], body, len(fds)) for header, body, fds in got] == [("one", b"x", 1), ("two", b"", 0)]

    linked(test)


def test_large_frame_goes_out_in_pieces() -> None:
    """Nothing blocks; the future tells when the last byte has gone."""
    body = os.urandom(4 << 20)

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        rest = made.post({"op": "big"}, body)
        assert rest is not None
        theirs.settimeout(5)
        received = await asyncio.get_running_loop().run_in_executor(None, Connection(theirs).receive)
        await asyncio.wait_for(rest, 5)

        assert received[1] == body

    linked(test)


@pytest.mark.parametrize(
    "lie", [struct.pack("!II", 1 << 30, 0), struct.pack("!II", 2, 1 << 30), struct.pack("!II", 2, 0) + b"[]"]
)
def test_lie_ends_the_link(lie: bytes) -> None:
    """Before any of what it announces is held."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        theirs.sendall(lie)
        await until(lambda: ends)

        assert not made.is_open() and got == []

    linked(test)


def test_end_of_the_other_side_is_told_once() -> None:
    """With the reason; posting afterwards is harmless."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        theirs.close()
        await until(lambda: ends)
        made.end("again")

        assert len(ends) == 1
        assert made.post({"op": "late"}) is None

    linked(test)


def test_flood_does_not_keep_the_loop() -> None:
    """Other sandboxes get their turn between two reads."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        theirs.setblocking(False)
        data, turns = pack({"op": "flood"}, bytes(60_000)), 0
        while len(got) < 50:
            try:
                theirs.send(data)
            except BlockingIOError:
                pass
            except BrokenPipeError:
                break
            turns += 1
            await asyncio.sleep(0)

        assert turns > 10

    linked(test)


def test_paused_link_reads_nothing_until_resumed() -> None:
    """Whoever is slow to take output stops the one who produces it."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        made.pause()
        Connection(theirs).send({"op": "one"})
        await asyncio.sleep(0.02)
        assert got == []

        made.resume()
        await until(lambda: got)

    linked(test)


@pytest.mark.parametrize("value", [-1, 1.0, "1", True, None, 11])
def test_number_out_of_its_range_is_no_number(value: object) -> None:
    """A bool is an int in Python, and none here."""
    with pytest.raises(FrameError):
        link.number({"n": value}, "n", most=10)


def test_missing_number_is_zero() -> None:
    """Fields may be added later."""
    assert link.number({}, "n") == 0


def test_what_was_sent_before_the_end_is_taken_without_a_turn_of_the_loop() -> None:
    """An agent that leaves after its answer is reaped, and that may be heard of before the answer is read."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        peer = Connection(theirs)
        peer.send({"op": "one"}, b"x" * 100_000)
        peer.send({"op": "two"})
        theirs.close()
        made.drain()

        assert [header["op"] for header, _, _ in got] == ["one", "two"]
        made.drain()
        assert ends == ["it closed its socket"]

    linked(test)


def test_draining_does_not_wait_for_an_end_that_does_not_come() -> None:
    """Somebody else may hold the socket."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        Connection(theirs).send({"op": "one"})
        made.drain()

        assert len(got) == 1 and not ends

    linked(test)


def test_a_descriptor_that_is_given_away_is_closed_when_it_has_gone() -> None:
    """Also when the other end reads late, or never."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        reader, writer = os.pipe()
        made.give({"op": "now"}, reader)
        assert not _is_open(reader)
        while made.post({"op": "full"}, bytes(1 << 16)) is None:
            pass
        made.give({"op": "later"}, writer)
        assert _is_open(writer)
        made.end("over")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not _is_open(writer)

    linked(test)


def _is_open(fd: int) -> bool:
    return os.path.exists(f"/proc/self/fd/{fd}")


def test_a_link_that_lingers_is_over_for_us_alone() -> None:
    """Until it is ended in earnest, or the time is over."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        theirs.setblocking(False)
        made.end("enough", linger_s=60.0)
        made.end("enough", linger_s=60.0)

        assert not made.is_open() and ends == ["enough"]
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
        made.end("gone")
        assert theirs.recv(1) == b"" and ends == ["enough"]

    linked(test)


def test_who_lingers_is_not_waited_for() -> None:
    """Nobody need end it in earnest."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        theirs.setblocking(False)
        made.end("enough", linger_s=0.001)
        await until(lambda: at_end(theirs))

    linked(test)


def at_end(theirs: socket.socket) -> bool:
    """Whether the other end was closed."""
    try:
        return theirs.recv(1) == b""
    except BlockingIOError:
        return False


def test_a_header_is_what_pythons_own_json_makes_of_it() -> None:
    """Half a surrogate pair is in a file's name, and a program may say that it took no number of seconds."""

    async def test(made: Link, theirs: socket.socket, got: Got, ends: list[str]) -> None:
        peer = Connection(theirs)
        for header in ({"op": "stat", "path": "\ud800é"}, {"n": 10**30, "of": [1, {"a": None}], "late": 1.5}):
            made.post(header, b"body")
            assert peer.receive()[:2] == (header, b"body")
            peer.send(header, b"body")
        peer.send({"took": float("inf")})
        await until(lambda: len(got) == 3)

        assert [header for header, _, _ in got][1:] == [header, {"took": float("inf")}]
        assert got[0][0]["path"] == "\ud800é"
        assert not ends

    linked(test)
