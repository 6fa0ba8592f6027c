"""One exec while it runs, from the node's side: its output on the way to a reader, its input on the way in.

Both are bounded by credit (see `guest/credit.py`). Output: the agent sends no more than a window beyond what the reader
has taken, so a slow reader costs flat memory here and holds up nobody but the program. Input: whoever feeds waits until
the program has read enough of what was sent. An agent that does not keep to it is no agent of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from hotbed.guest.credit import WINDOW, cost
from hotbed.guest.frames import FrameError, Header

ALLOWANCE = WINDOW + (8 << 20)  # what is in the pipes when an exec ends comes without credit
_OWED_MOST = WINDOW // 4

Post = Callable[[Header, bytes], object]
Piece = tuple[Header, bytes]


class Running(Protocol):
    """What can be done to an exec while it runs. Once it has ended, all of it does nothing."""

    async def feed(self, data: bytes) -> None:
        """Give it input; returns when it has read enough of what came before."""
        ...

    def end_input(self) -> None:
        """There will be no more input."""
        ...

    def signal(self, number: int) -> None:
        """Signal its process group, as a terminal would."""
        ...

    def resize(self, rows: int, columns: int) -> None:
        """Its terminal has another size."""
        ...

    def kill(self) -> None:
        """End it and everything it started; its outcome says `signal`."""
        ...


OnStart = Callable[[Running], None]


class RunningExec:
    """An exec of one conversation. `post` says something to its agent."""

    def __init__(self, name: str, post: Post) -> None:
        self._name = name
        self._post = post
        self._pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
        self._held = self._owed = self._under_way = 0
        self._room = asyncio.Event()
        self._room.set()
        self._over = False

    def take(self, header: Header, body: bytes) -> None:
        """What the agent says of it. Raises `FrameError` for more than it may say."""
        if header.get("op") == "output":
            self._held += cost(len(body))
            if self._held > ALLOWANCE:
                raise FrameError("more output than was asked for")
            self._pieces.put_nowait((header, body))
        else:
            count = header.get("bytes")
            if type(count) is not int or not 0 <= count <= self._under_way:
                raise FrameError("input was taken that was not sent")
            self._under_way -= count
            if self._under_way < WINDOW:
                self._room.set()

    async def pieces(self) -> AsyncIterator[Piece]:
        """Its output until it has ended. Asking for the next piece says that the last one was taken."""
        while (piece := await self._pieces.get()) is not None:
            yield piece
            amount = cost(len(piece[1]))
            self._held -= amount
            self._owed += amount
            if self._owed >= _OWED_MOST and not self._over:
                self._say("ack", amount=self._owed)
                self._owed = 0

    def end(self) -> None:
        """It has ended. Idempotent."""
        if not self._over:
            self._over = True
            self._pieces.put_nowait(None)
            self._room.set()

    async def feed(self, data: bytes) -> None:
        """Give it input, within the window."""
        at = 0
        while at < len(data) and not self._over:
            await self._room.wait()
            part = data[at : at + WINDOW]
            at += len(part)
            self._under_way += len(part)
            if self._under_way >= WINDOW:
                self._room.clear()
            self._say("input", part)

    def end_input(self) -> None:
        """An empty input is its end."""
        self._say("input")

    def signal(self, number: int) -> None:
        """Signal its leader's process group."""
        self._say("signal", signal=number)

    def resize(self, rows: int, columns: int) -> None:
        """Another size of its terminal."""
        self._say("resize", size=[rows, columns])

    def kill(self) -> None:
        """Kill its tree."""
        self._say("cancel")

    def _say(self, op: str, body: bytes = b"", **fields: object) -> None:
        if not self._over:
            self._post({"op": op, "id": self._name, **fields}, body)
