"""A running program: how it ended, whatever took it down."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hotbed.errors import ProtocolError, SandboxFailed, SandboxGone
from hotbed.runtime.base import BoxRequest
from hotbed.runtime.conversations import Answer, Conversation
from hotbed.runtime.programs import RunningProgram
from hotbed.runtime.replay.client import Report

ENDED: dict[str, Any] = {"op": "ended", "id": "1", "status": "exit", "exit_code": 3, "stdout": 2, "stderr": 1}


class Place:
    """A sandbox, as far as a program needs one."""

    def __init__(self, talk: Conversation, *, out_of_memory: bool = False) -> None:
        self.talk = talk
        self.request = BoxRequest()
        self._out_of_memory = out_of_memory

    def ran_out_of_memory(self) -> bool:
        """As set."""
        return self._out_of_memory

    async def peek(self, name: str) -> tuple[bytes, bytes]:
        """Something."""
        return name.encode(), b""

    async def cancel(self, name: str) -> None:
        """Nothing."""


class Pin:
    """A supervisor's word on a pin, for as long as it has not been dropped."""

    def __init__(self) -> None:
        self.asked = 0
        self.dropped = False

    async def report(self) -> Report:
        """How it stands."""
        self.asked += 1
        await asyncio.sleep(0)
        if self.dropped:
            raise SandboxFailed("unknown")
        return Report(ack="verified", pinned=("aslr",), counts={})

    def drop(self) -> None:
        """Hear no more of it."""
        self.dropped = True


def running(
    test: Callable[[RunningProgram, asyncio.Future[Answer]], Awaitable[None]],
    *,
    out_of_memory: bool = False,
    pinned: Any = None,
) -> None:
    """Run a test with a program and the future of its end."""

    async def run() -> None:
        ours, theirs = socket.socketpair()
        talk = Conversation("it", ours, body_limit=1000, on_notice=lambda _: None, on_end=lambda _: None)
        end: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        with theirs:
            place = Place(talk, out_of_memory=out_of_memory)
            await test(RunningProgram(place, "1", end, pinned), end)
        talk.end("over")

    asyncio.run(run())


def test_end_tells_status_and_output() -> None:
    """The tail of what it printed explains the rest."""

    async def test(program: RunningProgram, end: asyncio.Future[Answer]) -> None:
        end.set_result((ENDED, b"abX", []))
        ended = await program.wait()

        assert (ended.status, ended.exit_code, ended.stdout, ended.stderr) == ("exit", 3, b"ab", b"X")

    running(test)


def test_lie_about_the_end_is_a_failure() -> None:
    """As everywhere."""

    async def test(program: RunningProgram, end: asyncio.Future[Answer]) -> None:
        end.set_result(({**ENDED, "stdout": 9}, b"abX", []))
        with pytest.raises(ProtocolError):
            await program.wait()

    running(test)


@pytest.mark.parametrize("out_of_memory", [True, False])
def test_loss_of_the_sandbox_says_whether_memory_was_it(out_of_memory: bool) -> None:
    """The kernel kills the agent too, and nobody is left to tell."""

    async def test(program: RunningProgram, end: asyncio.Future[Answer]) -> None:
        end.set_exception(SandboxGone("gone"))
        if out_of_memory:
            assert (await program.wait()).status == "oom"
        else:
            with pytest.raises(SandboxGone):
                await program.wait()

    running(test, out_of_memory=out_of_memory)


def test_handle_is_kept_until_the_end_and_no_longer() -> None:
    """A pidfd of a process that is gone would be one descriptor for ever."""

    async def test(program: RunningProgram, end: asyncio.Future[Answer]) -> None:
        fd = os.open("/dev/null", os.O_RDONLY)
        program.hold([fd])
        assert program.handle == fd
        end.set_result((ENDED, b"abX", []))
        await asyncio.sleep(0.01)

        assert program.handle is None
        with pytest.raises(OSError):
            os.fstat(fd)

    running(test)


def test_unpinned_program_pins_nothing() -> None:
    """And says so."""

    async def test(program: RunningProgram, end: asyncio.Future[Answer]) -> None:
        assert await program.pins() == ("off", ())
        assert await program.output() == (b"1", b"")
        end.cancel()

    running(test)


@pytest.mark.parametrize("gone", [False, True])
def test_what_was_pinned_is_known_after_the_end(gone: bool) -> None:
    """A judge's verdict may come after a candidate's death, and is no less about what was pinned."""
    pin = Pin()

    async def test(program: RunningProgram, end: asyncio.Future[Answer]) -> None:
        if gone:
            end.set_exception(SandboxGone("gone"))
        else:
            end.set_result((ENDED, b"abX", []))
        await asyncio.sleep(0.01)
        assert pin.dropped
        assert await program.pins() == ("verified", ("aslr", "hostname"))
        assert pin.asked == 1

    running(test, pinned=pin)


def test_an_end_amid_the_question_is_one_question() -> None:
    """The supervisor's answer is to one of them; the other would wait for ever."""
    pin = Pin()

    async def test(program: RunningProgram, end: asyncio.Future[Answer]) -> None:
        asking = asyncio.ensure_future(program.pins())
        await asyncio.sleep(0)
        end.set_exception(SandboxGone("it was closed"))
        with contextlib.suppress(SandboxFailed):
            await asking
        assert (pin.asked, pin.dropped) == (1, True)

    running(test, pinned=pin)
