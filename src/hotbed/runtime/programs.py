"""A guest program that runs in a sandbox: its end, what it has printed, what is pinned of it."""

from __future__ import annotations

import asyncio
import os
from typing import Protocol

from hotbed.errors import SandboxGone
from hotbed.runtime import answers
from hotbed.runtime.base import ProgramEnd
from hotbed.runtime.conversations import Answer, Conversation
from hotbed.runtime.link import close_all
from hotbed.runtime.replay.pinner import Pinned


class Place(Protocol):
    """What a program needs of the sandbox it runs in."""

    talk: Conversation

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
        if pinned is not None:
            self.end.add_done_callback(lambda _: pinned.drop())

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
        report = await self._pinned.report()
        return report.ack, report.pinned

    async def output(self) -> tuple[bytes, bytes]:
        """What it has written so far, as far as it is kept: stdout and stderr."""
        return await self._box.peek(self._name)

    async def cancel(self) -> None:
        """Kill it and what it started."""
        await self._box.cancel(self._name)
