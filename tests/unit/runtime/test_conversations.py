"""Requests by id: each is answered or fails, and what nobody takes is closed."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable

import pytest

from hotbed.errors import FileMissing, ProtocolError, SandboxFailed, SandboxGone
from hotbed.guest import frames
from hotbed.guest.frames import FrameError
from hotbed.runtime.conversations import Conversation, end_of, only

Notices = list[frames.Header]


def talking(test: Callable[[Conversation, frames.Connection, Notices], Awaitable[None]]) -> list[str]:
    """Run a test with a conversation and its other end; why it ended, each time that was told."""
    ends: list[str] = []

    async def run() -> None:
        ours, theirs = socket.socketpair()
        theirs.settimeout(5)
        notices: Notices = []
        talk = Conversation("it", ours, body_limit=1000, on_notice=notices.append, on_end=ends.append)
        with theirs:
            await test(talk, frames.Connection(theirs), notices)
        talk.end("over")

    asyncio.run(run())
    return ends


async def received(peer: frames.Connection) -> frames.Header:
    """The next request."""
    return (await asyncio.get_running_loop().run_in_executor(None, peer.receive))[0]


def test_answer_finds_its_request() -> None:
    """By name, in any order."""

    async def test(talk: Conversation, peer: frames.Connection, notices: Notices) -> None:
        both = asyncio.gather(talk.ask({"op": "a"}, timeout_s=5), talk.ask({"op": "b"}, timeout_s=5))
        first, second = await received(peer), await received(peer)
        peer.send({"op": "done", "id": second["id"], "n": 2})
        peer.send({"op": "done", "id": first["id"], "n": 1})

        assert [answer[0]["n"] for answer in await both] == [1, 2]

    talking(test)


def test_error_answer_raises_and_the_conversation_goes_on() -> None:
    """It was an answer."""

    async def test(talk: Conversation, peer: frames.Connection, notices: Notices) -> None:
        asked = asyncio.gather(talk.ask({"op": "open"}, timeout_s=5), return_exceptions=True)
        name = (await received(peer))["id"]
        peer.send({"op": "error", "id": name, "code": "not_found", "message": "no"})

        assert isinstance((await asked)[0], FileMissing)
        assert talk.is_open()

    talking(test)


def test_what_comes_unasked_is_a_notice() -> None:
    """Birth, and the failure of isolation, before any request."""

    async def test(talk: Conversation, peer: frames.Connection, notices: Notices) -> None:
        peer.send({"op": "born"})
        while not notices:
            await asyncio.sleep(0.001)

        assert notices == [{"op": "born"}]

    talking(test)


def test_first_failure_is_everybodys() -> None:
    """Those who wait, and those who ask later; the end is told once."""

    async def test(talk: Conversation, peer: frames.Connection, notices: Notices) -> None:
        asked = asyncio.gather(talk.ask({"op": "a"}, timeout_s=5), return_exceptions=True)
        await received(peer)
        talk.fail(SandboxFailed("first"))
        talk.fail(SandboxFailed("second"))

        assert str((await asked)[0]) == "first"
        with pytest.raises(SandboxFailed, match="first"):
            await talk.ask({"op": "b"}, timeout_s=5)

    assert talking(test) == ["first"]


def test_silence_is_a_failure() -> None:
    """The deadline is the node's own."""

    async def test(talk: Conversation, peer: frames.Connection, notices: Notices) -> None:
        with pytest.raises(SandboxFailed, match="no answer to slow"):
            await talk.ask({"op": "slow"}, timeout_s=0.02)
        assert not talk.is_open()

    talking(test)


def test_end_of_the_other_side_is_gone() -> None:
    """Not failed: it may just have been killed."""

    async def test(talk: Conversation, peer: frames.Connection, notices: Notices) -> None:
        asked = asyncio.gather(talk.ask({"op": "a"}, timeout_s=5), return_exceptions=True)
        await received(peer)
        peer.close()

        assert isinstance((await asked)[0], SandboxGone)

    talking(test)


def test_malformed_answer_is_blamed_on_its_giver() -> None:
    """And its descriptors are closed."""

    async def test(talk: Conversation, peer: frames.Connection, notices: Notices) -> None:
        reader, writer = os.pipe()
        os.close(writer)
        with pytest.raises(ProtocolError), talk.blame(({}, b"", [reader])):
            raise FrameError("order does not add up")

        assert not talk.is_open()
        with pytest.raises(OSError):
            os.fstat(reader)

    talking(test)


def test_descriptors_of_an_answer_that_nobody_waits_for_are_closed() -> None:
    """Whoever asked may have been cancelled meanwhile."""

    async def test(talk: Conversation, peer: frames.Connection, notices: Notices) -> None:
        before = len(os.listdir("/proc/self/fd"))
        reader, writer = os.pipe()
        peer.send({"op": "opened", "id": "99"}, b"", [reader])
        os.close(reader)
        os.close(writer)
        await asyncio.sleep(0.05)

        assert len(os.listdir("/proc/self/fd")) <= before + 1  # the executor may have opened one

    talking(test)


def test_end_of_a_program_has_a_name_of_its_own() -> None:
    """Its start has been answered under the plain one."""

    async def test(talk: Conversation, peer: frames.Connection, notices: Notices) -> None:
        end = talk.expect(end_of("1"))
        asked = asyncio.gather(talk.ask({"op": "start"}, timeout_s=5, name="1"))
        await received(peer)
        peer.send({"op": "started", "id": "1"})
        await asked
        peer.send({"op": "ended", "id": "1", "status": "ok"})

        assert (await asyncio.wait_for(end, 5))[0]["op"] == "ended"

    talking(test)


@pytest.mark.parametrize("fds", [[], [1, 2]])
def test_one_descriptor_means_one(fds: list[int]) -> None:
    """Neither none nor two."""
    assert only([7]) == 7
    with pytest.raises(FrameError):
        only(fds)
