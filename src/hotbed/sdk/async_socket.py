"""A WebSocket for asyncio, on the loop's own streams, which carry TLS both ways at once."""

from __future__ import annotations

import asyncio
import socket

from hotbed.errors import NodeUnavailable
from hotbed.sdk.async_transport import dialled
from hotbed.sdk.transport import Link
from hotbed.sdk.websocket import CLOSE, PING, PONG, Message, SocketReader, frame, upgrade_request

_RECEIVE = 256 << 10
_OPEN_S = 30.0


class AsyncSocket:
    """An open WebSocket to a node."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._stream = reader
        self._writer = writer
        self._reader = SocketReader()

    @classmethod
    async def open(cls, link: Link, target: str) -> AsyncSocket:
        """Dial and upgrade. Raises the node's refusal, or `NodeUnavailable`."""
        try:
            return await asyncio.wait_for(cls._open(link, target), _OPEN_S)
        except (OSError, asyncio.TimeoutError) as reason:
            raise NodeUnavailable(f"no node answers: {reason}") from reason

    @classmethod
    async def _open(cls, link: Link, target: str) -> AsyncSocket:
        made = cls(*await _dial(link))
        try:
            await made._write(upgrade_request(link.address.prefix + target, link.headers(leased=False)))
            while not made._reader.is_open:
                made._reader.feed(await made._stream.read(_RECEIVE))
        except BaseException:
            made.close()
            raise
        return made

    async def send(self, kind: int, data: bytes) -> None:
        """Send one message. Raises OSError."""
        await self._write(frame(kind, data))

    async def receive(self) -> Message:
        """The next message but pings. Raises OSError, `ProtocolError`."""
        while True:
            message = self._reader.message()
            if message is None:
                self._reader.feed(await self._stream.read(_RECEIVE))
            elif message[0] == PING:
                await self.send(PONG, message[1])
            elif message[0] != PONG:
                return message

    async def finish(self) -> None:
        """Hang up once all that was sent has gone out. Raises OSError."""
        self._writer.write(frame(CLOSE, b""))
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except BaseException:
            self._writer.transport.abort()
            raise

    def close(self) -> None:
        """Hang up now. Idempotent."""
        if self._writer.is_closing():
            return
        self._writer.write(frame(CLOSE, b""))
        # What has not gone out by now need not: the end of the connection says the same. A TLS connection that is
        # closed in form waits for the node, and a loop that ends meanwhile would leave it open.
        self._writer.transport.abort()

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


async def _dial(link: Link) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = link.address
    if address.unix_path is not None:
        local = await dialled(address, _OPEN_S)
        local.setblocking(False)
        return await asyncio.open_unix_connection(sock=local)
    if not address.tls:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return reader, writer
    import ssl  # not for those who do not use it

    context = ssl.create_default_context()
    return await asyncio.open_connection(address.host, address.port, ssl=context, server_hostname=address.host)
