"""What was asked of the broker and is not answered yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

from hotbed.errors import SandboxFailed
from hotbed.guest.frames import Header

PATIENCE_S = 20.0


class Answers:
    """By what each of them is known: the number of a question, or the sandbox that is to be opened."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, asyncio.Future[Header]] = {}

    async def hear(self, key: Hashable, say: Callable[[], object]) -> Header:
        """What is answered to what is said. Raises `SandboxFailed` where it is a refusal, or nothing for long."""
        answer = self._waiting[key] = asyncio.get_running_loop().create_future()
        try:
            say()
            return await asyncio.wait_for(answer, PATIENCE_S)
        except asyncio.TimeoutError:
            raise SandboxFailed(f"the egress broker gave no answer for {PATIENCE_S:.0f} s") from None
        finally:
            self._waiting.pop(key, None)

    def arrived(self, key: Hashable, header: Header) -> None:
        """An answer, if anybody still waits for it."""
        answer = self._waiting.get(key)
        if answer is not None and not answer.done():
            answer.set_result(header)

    def refused(self, key: Hashable, why: str) -> None:
        """The same for what cannot be had."""
        answer = self._waiting.get(key)
        if answer is not None and not answer.done():
            answer.set_exception(SandboxFailed(why))

    def none_will_come(self, why: str) -> None:
        """Nobody is there to answer."""
        for key in tuple(self._waiting):
            self.refused(key, why)
