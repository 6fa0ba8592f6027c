"""A process that is talked to while it runs, for asyncio. The twin of `process.py`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from hotbed.errors import DeadlineExceeded, NodeUnavailable
from hotbed.sdk.async_socket import AsyncSocket
from hotbed.sdk.process_talk import PIECE, Piece, ProcessTalk, as_bytes, control, request_message
from hotbed.sdk.results import Result
from hotbed.sdk.transport import Link
from hotbed.sdk.websocket import Message
from hotbed.wire.processes import PROCESS_SOCKET, Control, ProcessRequest


class AsyncProcess:
    """A program with open input, from `AsyncSandbox.process`. Every method is a coroutine.

    Iterate to get its output as it comes, `(stream, data)` with stream 1 or 2; on a terminal, all of it is stream 1.
    Leaving `async with`, or closing it, kills it and all that it started.
    """

    def __init__(self, socket: AsyncSocket) -> None:
        self._socket = socket
        self._talk = ProcessTalk()
        self._changed = asyncio.Condition()
        self._hearing = False

    @classmethod
    async def _start(cls, link: Link, sandbox_id: str, request: ProcessRequest) -> AsyncProcess:
        socket = await AsyncSocket.open(link, PROCESS_SOCKET.format(id=sandbox_id))
        made = cls(socket)
        try:
            await socket.send(*request_message(request))
            while not made._talk.started and not made._talk.is_over:
                await made._hear()
            if made._talk.failure is not None:
                raise made._talk.failure
        except BaseException:
            socket.close()
            raise
        return made

    async def write(self, data: str | bytes) -> None:
        """Give it input. Waits while it has not read what came before; one that has ended reads nothing."""
        left = as_bytes(data)
        while left and not self._talk.is_over:
            await self._until(self._talk.has_room)
            message = self._talk.input(left[:PIECE])
            left = left[PIECE:]
            await self._say(message)

    async def end_input(self) -> None:
        """There will be no more input; on a terminal, as Ctrl-D."""
        await self._say(control(Control(op="end_input")))

    async def signal(self, number: int) -> None:
        """Signal its process group."""
        await self._say(control(Control(op="signal", signal=int(number))))

    async def resize(self, rows: int, columns: int) -> None:
        """Its terminal has another size now."""
        await self._say(control(Control(op="resize", rows=rows, columns=columns)))

    async def kill(self) -> None:
        """End it and all that it started; its result says `signal`."""
        await self._say(control(Control(op="kill")))

    async def read(self, timeout_s: float | None = None) -> Piece | None:
        """The next piece of its output, `(stream, data)`; None when there is no more. Raises `DeadlineExceeded`."""
        await self._until(lambda: bool(self._talk.pieces) or self._talk.is_over, timeout_s)
        if self._talk.pieces:
            return self._talk.pieces.popleft()
        self._talk.outcome()
        return None

    async def wait(self, timeout_s: float | None = None) -> Result:
        """Its result, once it has ended. Output that was not read is dropped here; the result holds it."""
        await self._until(lambda: self._talk.is_over, timeout_s, keep=False)
        return self._talk.outcome()

    @property
    def ended(self) -> bool:
        """Whether its end has been heard of."""
        return self._talk.is_over

    async def close(self) -> None:
        """Kill it if it runs, and let go. Idempotent."""
        self._socket.close()

    async def _say(self, message: Message) -> None:
        if self._talk.is_over:
            return
        try:
            await self._socket.send(*message)
        except OSError as reason:
            self._lost(reason)

    async def _until(self, condition: Callable[[], bool], timeout_s: float | None = None, *, keep: bool = True) -> None:
        """Hear what comes until a condition holds. One task hears for all."""
        try:
            await asyncio.wait_for(self._hear_until(condition, keep=keep), timeout_s)
        except asyncio.TimeoutError:
            raise DeadlineExceeded("it has not happened in that time") from None

    async def _hear_until(self, condition: Callable[[], bool], *, keep: bool) -> None:
        while True:
            if not keep:
                self._talk.pieces.clear()
            if condition():
                return
            if self._hearing:
                async with self._changed:
                    await self._changed.wait()
                continue
            self._hearing = True
            try:
                await self._hear()
            finally:
                self._hearing = False
                async with self._changed:
                    self._changed.notify_all()

    async def _hear(self) -> None:
        try:
            self._talk.hear(await self._socket.receive())
        except OSError as reason:
            self._lost(reason)
        if self._talk.is_over:
            self._socket.close()

    def _lost(self, reason: OSError) -> None:
        self._talk.fail(NodeUnavailable(f"the node went away while it ran: {reason}"))
        self._socket.close()

    async def __aiter__(self) -> AsyncIterator[Piece]:
        while (piece := await self.read()) is not None:
            yield piece

    async def __aenter__(self) -> AsyncProcess:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
