"""Requests and answers between the node and one agent: by id, each with a deadline, and one way to fail.

The agent is not trusted. An answer that is none of ours, an answer that never comes, or the end of the link ends the
whole conversation: whoever waits gets the first failure, and so does whoever asks later. The link is read at all times:
how much output an agent may send ahead of its reader is a matter of credit (see `running`).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hotbed.errors import ProtocolError, SandboxFailed, SandboxGone
from hotbed.guest.frames import FrameError, Header
from hotbed.runtime import answers
from hotbed.runtime.link import Link, close_all
from hotbed.runtime.running import RunningExec

Answer = tuple[Header, bytes, list[int]]


class Conversation:
    """What is being asked of one agent. `on_notice` gets what comes unasked, `on_end` the reason of the end, once."""

    def __init__(
        self,
        whose: str,
        sock: socket.socket,
        *,
        body_limit: int,
        on_notice: Callable[[Header], None],
        on_end: Callable[[str], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._whose = whose
        self._names = itertools.count(1)
        self._awaited: dict[str, asyncio.Future[Answer]] = {}
        self._running: dict[str, RunningExec] = {}
        self._on_notice = on_notice
        self._tell_end = on_end
        self.failure: Exception | None = None
        self._link = Link(sock, body_limit=body_limit, on_frame=self._on_frame, on_end=self._on_end)

    def is_open(self) -> bool:
        """Whether anything can still be asked."""
        return self._link.is_open()

    def check_open(self) -> None:
        """Raise why nothing can be asked any more, if that is so."""
        if not self.is_open():
            raise self.failure or SandboxGone(f"{self._whose} has ended")

    def new_name(self) -> str:
        """A name for one request."""
        return str(next(self._names))

    def post(self, header: Header, body: bytes = b"") -> None:
        """Say something that has no answer."""
        if self.is_open():
            self._link.post(header, body)

    async def ask(
        self,
        header: Header,
        body: bytes = b"",
        *,
        fds: tuple[int, ...] = (),
        timeout_s: float,
        name: str | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> Answer:
        """Send a request and wait for the answer of its name. An error answer raises. The caller owns descriptors."""
        self.check_open()
        name = name or self.new_name()
        answer = self.expect(name)
        timer = self._loop.call_later(timeout_s, _expire, answer)
        found: Answer | None = None
        try:
            await self._send({**header, "id": name}, body, fds, timeout_s)
            if on_sent is not None:
                on_sent()
            found = await answer
        except asyncio.TimeoutError:
            self.fail(SandboxFailed(f"{self._whose} gave no answer to {header['op']} for {timeout_s:.0f} s"))
            raise self.failure or SandboxGone() from None
        finally:
            timer.cancel()
            self.forget(name)
            if found is None:
                _drop(answer)
        if found[0].get("op") == "error":
            close_all(found[2])
            raise answers.error_of(found[0])
        return found

    async def _send(self, header: Header, body: bytes, fds: tuple[int, ...], timeout_s: float) -> None:
        rest = self._link.post(header, body, fds)
        if rest is not None:
            await asyncio.wait_for(rest, timeout_s)

    @contextmanager
    def running(self, name: str) -> Iterator[RunningExec]:
        """What is to be heard of an exec while it runs, and said to it."""
        running = self._running[name] = RunningExec(name, self.post)
        try:
            yield running
        finally:
            running.end()
            del self._running[name]

    def expect(self, name: str) -> asyncio.Future[Answer]:
        """The future of an answer that will come under a name; a program's end comes under its own."""
        answer = self._awaited[name] = self._loop.create_future()
        return answer

    def forget(self, name: str) -> None:
        """Wait for it no more."""
        self._awaited.pop(name, None)

    def fail(self, error: Exception) -> None:
        """End it because of what the agent did."""
        self.failure = self.failure or error
        self._link.end(str(error))

    def hear_out(self) -> None:
        """Take what the agent said before it ended."""
        self._link.drain()

    def end(self, reason: str, *, linger_s: float = 0.0) -> None:
        """Close it, or let the agent hear of that later (see `Link.end`). Idempotent."""
        self._link.end(reason, linger_s=linger_s)

    @contextmanager
    def blame(self, answer: Answer) -> Iterator[None]:
        """Turns a malformed answer into the failure of the one who gave it."""
        try:
            yield
        except (FrameError, OSError) as error:
            close_all(answer[2])
            failure = ProtocolError(f"{self._whose} answered what is no answer: {error}")
            self.fail(failure)
            raise failure from None

    def _on_frame(self, header: Header, body: bytes, fds: list[int]) -> None:
        op, name = header.get("op"), header.get("id")
        running = self._running.get(str(name))
        if name is None:
            close_all(fds)
            self._on_notice(header)
            return
        if running is not None and op in ("output", "fed"):
            close_all(fds)
            running.take(header, body)
            return
        answer = self._awaited.get(end_of(str(name)) if op == "ended" else str(name))
        if answer is not None and not answer.done():
            answer.set_result((header, body, fds))
        else:
            close_all(fds)

    def _on_end(self, reason: str) -> None:
        self.failure = self.failure or SandboxGone(f"{self._whose} has ended: {reason}")
        for answer in self._awaited.values():
            if not answer.done():
                answer.set_exception(self.failure)
                answer.exception()  # retrieved here too, for nobody may be waiting
        tell_end = self._tell_end
        self._on_notice = self._tell_end = _nobody  # as in `Link.end`
        tell_end(reason)


def _nobody(_: object) -> None:
    """Hears what an ended conversation would tell."""


def end_of(name: str) -> str:
    """Under which name a program's end is awaited, beside the answer to its start."""
    return name + ".end"


def only(fds: list[int]) -> int:
    """The one descriptor that an answer must carry. Raises `FrameError`."""
    if len(fds) != 1:
        raise FrameError(f"{len(fds)} descriptors where one was due")
    return fds[0]


def _expire(answer: asyncio.Future[Answer]) -> None:
    if not answer.done():
        answer.set_exception(asyncio.TimeoutError())


def _drop(answer: asyncio.Future[Answer]) -> None:
    """Close what came with an answer that nobody waits for any more."""
    if answer.done() and not answer.cancelled() and answer.exception() is None:
        for fd in answer.result()[2]:
            os.close(fd)
