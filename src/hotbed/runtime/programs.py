"""A guest program that runs in a sandbox: its end, what it has printed, what is pinned of it."""

from __future__ import annotations

import asyncio
import os
from typing import Protocol

from hotbed.errors import SandboxGone
from hotbed.runtime import answers
from hotbed.runtime.base import BoxRequest, ProgramEnd
from hotbed.runtime.conversations import Answer, Conversation
from hotbed.runtime.execs import pinned_by
from hotbed.runtime.link import close_all
from hotbed.runtime.replay.client import Report
from hotbed.runtime.replay.pinner import Pinned


class Place(Protocol):
    """What a program needs of the sandbox it runs in."""

    talk: Conversation
    request: BoxRequest

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed something in it for memory."""
        ...

    async def peek(self, name: str) -> tuple[bytes, bytes]:
        """What it has written so far."""
        ...

    async def cancel(self, name: str) -> None:
        """Kill it."""
        ...


class RunningProgram:
    """A guest program in a box. `end` is the answer that tells how it ended."""

    def __init__(self, box: Place, name: str, end: asyncio.Future[Answer], pinned: Pinned | None = None) -> None:
        self._box = box
        self._name = name
        self._pinned = pinned
        self.handle: int | None = None
        self.end = end
        self._asking: asyncio.Task[Report] | None = None
        if pinned is not None:
            self.end.add_done_callback(lambda _: self._conclude(pinned))

    def hold(self, fds: list[int]) -> None:
        """Keep the pidfd that came with the answer, if one did, until the program has ended."""
        self.handle = fds[0] if len(fds) == 1 else None
        if self.handle is None:
            close_all(fds)
        else:
            self.end.add_done_callback(lambda _: self._let_go())

    def _let_go(self) -> None:
        handle, self.handle = self.handle, None
        if handle is not None:
            os.close(handle)

    async def wait(self) -> ProgramEnd:
        """Wait for its end."""
        try:
            answer = await asyncio.shield(self.end)
        except SandboxGone:
            if self._box.ran_out_of_memory():
                return ProgramEnd(status="oom", exit_code=None, signal=9)
            raise
        with self._box.talk.blame(answer):
            end = answers.end_of(answer[0], answer[1])
        return end

    async def pins(self) -> tuple[str, tuple[str, ...]]:
        """`seed_ack` so far, and what is pinned."""
        if self._pinned is None:
            return "off", ()
        report = await asyncio.shield(self._asked(self._pinned))
        return report.ack, pinned_by(report, hostname=self._box.request.hostname)

    def _asked(self, pinned: Pinned) -> asyncio.Task[Report]:
        """How the pin stands: one question at a time, and none after the last."""
        if self._asking is None or (self._asking.done() and not self.end.done()):
            self._asking = asyncio.ensure_future(pinned.report())
        return self._asking

    def _conclude(self, pinned: Pinned) -> None:
        """It has ended, or its sandbox has. How its pin stood is asked before nobody knows any more.

        A judge may want it only now. Where it has been asked already, the sandbox was ended by us.
        """
        if self.end.cancelled() or (self.end.exception() is not None and self._asking is not None):
            pinned.drop()
            return

        def told(task: asyncio.Task[Report]) -> None:
            pinned.drop()
            if not task.cancelled():
                task.exception()  # whoever wants to know gets it

        self._asked(pinned).add_done_callback(told)

    async def output(self) -> tuple[bytes, bytes]:
        """What it has written so far, as far as it is kept: stdout and stderr."""
        return await self._box.peek(self._name)

    async def cancel(self) -> None:
        """Kill it and what it started."""
        await self._box.cancel(self._name)
