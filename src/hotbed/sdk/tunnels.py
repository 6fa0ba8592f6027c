"""Local ports that lead into a sandbox, over asyncio.

Each local connection is one tunnel: a WebSocket of its own, opened with the client's own right. Both directions end
each for itself, so a peer that says it is done and then waits for the answer gets it; nothing ends for being quiet.
"""

from __future__ import annotations

import asyncio
import socket

from hotbed.errors import Error, InvalidRequest
from hotbed.sdk.async_socket import AsyncSocket
from hotbed.sdk.transport import Link
from hotbed.sdk.websocket import BINARY, CLOSE, TEXT
from hotbed.wire.tunnels import CONNECT_SOCKET, EOF

CHUNK = 64 << 10


class AsyncPortForward:
    """A local port that leads to one of a sandbox, from `AsyncSandbox.port_forward`, until it is closed."""

    def __init__(self, link: Link, sandbox_id: str, port: int) -> None:
        if type(port) is not int or not 0 < port <= 65535:
            raise InvalidRequest(f"port must be 1 to 65535, not {port!r}")
        self._link = link
        self._target = f"{CONNECT_SOCKET.format(id=sandbox_id)}?port={port}&half_close=1"
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.host = ""
        self.port = 0

    async def _listen(self, host: str, port: int) -> None:
        # It listens only once it is known here: whoever is cancelled in between leaves no server that nobody can end.
        self._server = await asyncio.start_server(self._accepted, host, port, start_serving=False)
        try:
            await self._server.start_serving()
        except BaseException:
            await self.close()
            raise
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    @property
    def address(self) -> str:
        """Where to connect to, `host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The same for a browser."""
        return f"http://{self.host}:{self.port}"

    async def close(self) -> None:
        """Take no more connections and end those that are open. Idempotent."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "asyncio calls this in a task"
        self._open.add(task)
        try:
            if self._server is not None and self._server.is_serving():  # else we were closed before this task began
                await self._serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # the local peer went away, or we were closed: what it has not read is not waited for
        finally:
            writer.transport.abort()
            self._open.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Be one connection, until all that went through it has gone out on either side."""
        try:
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tunnel = await AsyncSocket.open(self._link, self._target)
            try:
                await _carry(tunnel, reader, writer)
                await tunnel.finish()
            finally:
                tunnel.close()
        except (OSError, Error):
            pass  # nothing listens inside, or it is gone: the local connection ends, with what came until then
        writer.close()
        await writer.wait_closed()

    async def __aenter__(self) -> AsyncPortForward:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _carry(tunnel: AsyncSocket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes until both directions have ended, or one has broken."""
    loop = asyncio.get_running_loop()
    ways = (loop.create_task(_inward(tunnel, reader)), loop.create_task(_outward(tunnel, writer)))
    try:
        await asyncio.gather(*ways)
    finally:  # a gathering that has failed cannot be cancelled any more, but the other way goes on
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _inward(tunnel: AsyncSocket, reader: asyncio.StreamReader) -> None:
    while data := await reader.read(CHUNK):
        await tunnel.send(BINARY, data)
    await tunnel.send(TEXT, EOF.encode())


async def _outward(tunnel: AsyncSocket, writer: asyncio.StreamWriter) -> None:
    while True:
        kind, data = await tunnel.receive()
        if kind == CLOSE:
            raise ConnectionResetError("the tunnel was closed")
        if kind == TEXT:
            if writer.can_write_eof():
                writer.write_eof()
            return
        writer.write(data)
        await writer.drain()
