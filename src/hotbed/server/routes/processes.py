"""A process that is talked to over its socket. See `hotbed.wire.processes` for the words.

Input waits in a queue of bounded length, and a client that keeps to its window never finds it full: so signals and the
client's end are heard whatever the program does with its input.
"""

from __future__ import annotations

import asyncio

import msgspec

from hotbed.errors import InvalidRequest
from hotbed.node.node import Node
from hotbed.node.processes import run_process
from hotbed.runtime.running import Running
from hotbed.server.connection import together
from hotbed.server.sockets import Socket, SocketCall
from hotbed.wire.execs import ResultEvent
from hotbed.wire.processes import INPUT_WINDOW, Control, ProcessRequest

REQUEST_S = 30.0

_request = msgspec.json.Decoder(ProcessRequest).decode
_control = msgspec.json.Decoder(Control).decode


async def process(node: Node, call: SocketCall) -> None:
    """Run one thing for as long as its socket is open."""
    if call.caller is not None:
        call.caller.check_scope("run")
    session = node.sessions.get(call.segment("id"), call.caller.sight if call.caller is not None else None)
    node.check_open()
    await call.socket.accept()
    request = await _first(call.socket)
    talk = Talk(call.socket)
    program = run_process(node, session, request, talk.heard, talk.begun)
    async with together(program, talk.listen(), talk.feed()) as (running, *sides):
        await asyncio.wait({running, *sides}, return_when=asyncio.FIRST_COMPLETED)
        for side in sides:
            if side.done():
                side.result()  # the client hung up, or said what makes no sense
        await call.socket.send_event(ResultEvent(result=await running))


async def _first(socket: Socket) -> ProcessRequest:
    """What to run."""
    try:
        text = await asyncio.wait_for(socket.message(), REQUEST_S)
    except asyncio.TimeoutError:
        raise InvalidRequest(f"nothing was asked for in {REQUEST_S:.0f} s") from None
    return _request(text)


class Talk:
    """What is said between one client and one program."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._running: asyncio.Future[Running] = asyncio.get_running_loop().create_future()
        self._input: asyncio.Queue[bytes] = asyncio.Queue()
        self._ahead = 0

    def begun(self, running: Running) -> None:
        """It runs."""
        if not self._running.done():
            self._running.set_result(running)

    async def heard(self, fd: int, data: bytes) -> None:
        """Pass output on."""
        await self._socket.send_bytes(bytes((fd,)) + data)

    async def listen(self) -> None:
        """Take what the client says, until it hangs up."""
        running = await self._running
        await self._socket.send_event({"event": "started"})
        while True:
            message = await self._socket.message()
            if isinstance(message, str):
                self._control(running, _control(message))
                continue
            self._ahead += len(message)
            if self._ahead > 2 * INPUT_WINDOW:
                raise InvalidRequest("more input than was asked for", hint="wait for `taken` events")
            self._input.put_nowait(message)

    def _control(self, running: Running, word: Control) -> None:
        if word.op == "end_input":
            self._input.put_nowait(b"")
        elif word.op == "signal":
            running.signal(word.signal or 0)
        elif word.op == "resize":
            running.resize(word.rows or 0, word.columns or 0)
        else:
            running.kill()

    async def feed(self) -> None:
        """Pass input on as fast as it is read."""
        running = await self._running
        while data := await self._input.get():
            await running.feed(data)
            self._ahead -= len(data)
            await self._socket.send_event({"event": "taken", "bytes": len(data)})
        running.end_input()
        await asyncio.Event().wait()  # until it is cancelled with the rest
