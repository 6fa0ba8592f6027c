"""Work that lasts no longer than the connection it is for.

ASGI tells of a client's end only to who asks `receive` for it. After the body has been read, the end is all that can
arrive there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")

MOMENT_S = 0.05

Emit = Callable[[bytes], Awaitable[None]]
Produce = Callable[[Emit], Coroutine[Any, Any, None]]


@asynccontextmanager
async def together(*works: Coroutine[Any, Any, Any]) -> AsyncIterator[tuple[asyncio.Task[Any], ...]]:
    """Tasks that have ended when the block has, whatever ends it."""
    loop = asyncio.get_running_loop()
    tasks = tuple(loop.create_task(work) for work in works)
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Gone(Exception):
    """The client hung up. Nobody is left to tell."""


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Do the work; cancel it, wait for it to end and raise `Gone` when the client hangs up first."""
    loop = asyncio.get_running_loop()
    working = loop.create_task(work)
    watching = loop.create_task(_disconnected(receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Gone
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def until_hung_up(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The same for work that is mostly over at once: nobody listens for the end before it has taken a moment.

    Two tasks and a wait for every request would cost more than the rest of the way here.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None, "a coroutine runs in a task"
    gone = False
    watching: list[asyncio.Task[None]] = []

    async def watch() -> None:
        nonlocal gone
        await _disconnected(receive)
        gone = True
        task.cancel()

    timer = loop.call_later(MOMENT_S, lambda: watching.append(loop.create_task(watch())))
    try:
        return await work
    except asyncio.CancelledError:
        if gone:
            raise Gone from None
        raise
    finally:
        timer.cancel()
        for watcher in watching:
            watcher.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Stream(Response):
    """A response whose bytes `produce` emits as it goes. Emitting waits while the client does not read."""

    def __init__(
        self, produce: Produce, *, media_type: str, headers: dict[str, str] | None = None, status: int = 200
    ) -> None:
        super().__init__(status_code=status, media_type=media_type, headers=headers)
        if "content-length" not in (headers or {}):
            del self.headers["content-length"]  # Starlette's is that of an empty body
        self._produce = produce

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def emit(chunk: bytes) -> None:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            await while_connected(receive, self._produce(emit))
        except Gone:
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})
