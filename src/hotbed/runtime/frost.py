"""Holding a sandbox still: frozen by a cgroup where one can be, else stopped by its agent with SIGSTOP.

Which of the two is told (`how`), since they differ: who is frozen notices nothing and cannot be woken from inside; a
stopped process may find that it was (its parent can see it), and the agent itself goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal, TypeVar

from hotbed.errors import Error, SandboxFailed
from hotbed.runtime.linux import freezer
from hotbed.runtime.linux.freezer import Freeze, Freezer
from hotbed.runtime.sandboxes import ForkBox

log = logging.getLogger(__name__)

T = TypeVar("T")
How = Literal["cgroup", "signals"]

_ASK_S = 20.0


class Frost:
    """What one backend freezes with. Each sandbox is still for as long as anybody wants it to be."""

    def __init__(self, freezer: Freezer | None, name: str) -> None:
        self._freezer = freezer
        self._name = name
        self._freezes: dict[int, Freeze] = {}
        self._wanted: dict[int, int] = {}
        self._turns: dict[int, asyncio.Lock] = {}
        self._undoings: set[asyncio.Future[None]] = set()

    async def begin(self, box: ForkBox) -> How:
        """Hold it still. Raises `SandboxFailed` if that cannot be done, `SandboxGone`."""
        box.talk.check_open()
        beginning = asyncio.ensure_future(self._begin(box))
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:  # it comes to be held all the same, and nobody would let it go
            undoing = asyncio.ensure_future(self._undo(box, beginning))
            self._undoings.add(undoing)
            undoing.add_done_callback(self._undoings.discard)
            raise

    async def _begin(self, box: ForkBox) -> How:
        async with self._turns.setdefault(box.id, asyncio.Lock()):
            how: How = "signals" if self._freezer is None or box.slot is None else "cgroup"
            if not self._wanted.get(box.id):
                await self._still(box)
            self._wanted[box.id] = self._wanted.get(box.id, 0) + 1
        return how

    async def _undo(self, box: ForkBox, beginning: asyncio.Future[How]) -> None:
        try:
            await beginning
            await self.end(box)
        except Error as error:
            log.info("event=not_held box=%d message=%r", box.id, error.message)

    async def end(self, box: ForkBox) -> None:
        """Let it go on, if nobody else wants it still."""
        async with self._turns.setdefault(box.id, asyncio.Lock()):
            left = self._wanted.pop(box.id, 0) - 1
            if left > 0:
                self._wanted[box.id] = left
            elif box.id in self._freezes:
                await _in_thread(self._freezes[box.id].end)
            elif box.is_alive():
                await box.ask_plainly("go", _ASK_S)

    @asynccontextmanager
    async def held(self, box: ForkBox) -> AsyncIterator[How]:
        """Still for as long as this lasts."""
        how = await self.begin(box)
        try:
            yield how
        finally:
            await asyncio.shield(self.end(box))

    async def _still(self, box: ForkBox) -> None:
        if self._freezer is None or box.slot is None:
            await box.ask_plainly("still", _ASK_S)
            return
        freeze = self._freezes.get(box.id)
        if freeze is None:
            name, slot = f"{self._name}-frozen-{box.id}", box.slot
            freeze = self._freezes[box.id] = Freeze(self._freezer, name, slot.directories[0], slot.members)
        try:
            await _in_thread(freeze.begin)
        except OSError as error:
            raise SandboxFailed(f"sandbox {box.id} could not be frozen: {error}") from None

    async def reclaim(self, box: ForkBox) -> int | None:
        """Give back what memory of a sandbox the kernel can take; bytes, or None where it cannot be asked to."""
        if box.slot is None or not box.slot.directories:
            return None
        memory = box.slot.memory_directory()
        return None if memory is None else await _in_thread(lambda: freezer.reclaim(memory))

    def forget(self, box_id: int) -> None:
        """The sandbox has ended. Thaws what is left of it, so that its group can be used again."""
        self._wanted.pop(box_id, None)
        self._turns.pop(box_id, None)
        freeze = self._freezes.pop(box_id, None)
        if freeze is not None:
            asyncio.get_running_loop().run_in_executor(None, _thaw, freeze)


def _thaw(freeze: Freeze) -> None:
    freeze.end()
    freeze.remove()


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, work)
