"""A browser in a sandbox, by its DevTools protocol: one WebSocket outside is one of the browser's inside.

An address with `protocol=cdp` is for a client that takes a WebSocket for the browser itself (Playwright's
`connect_over_cdp`). The browser's own address has an id that nobody outside knows, so it is asked for it first, over
the same port, as DevTools clients do; then messages are passed on whole, both ways. Both sides may compress, ask for
signs of life or take messages apart as they like: each side's WebSocket ends here.

What listens inside may be anything that a program put there. Of what it says only the path is used, to speak to that
very port, and how much it says, and for how long it may say nothing, is limited.
"""

from __future__ import annotations

import asyncio
import re
import socket as sockets
from typing import Any
from urllib.parse import urlsplit

import h11
import msgspec
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Message,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from hotbed.errors import InvalidRequest, PortClosed
from hotbed.server.connection import together
from hotbed.server.operation import BODY_LIMIT
from hotbed.server.sockets import Socket

CDP = "cdp"
ANSWER_S = 10.0
ABOUT_LIMIT = 64 << 10
CHUNK = 64 << 10
_ABOUT = "/json/version"
_PATH = re.compile(r"/[!-~]{1,512}")
_WRONG_ANSWERS = (h11.ProtocolError, ProtocolError, ValueError, OSError, asyncio.TimeoutError)


class _About(msgspec.Struct):
    """What is read of a browser's answer."""

    webSocketDebuggerUrl: str


async def find_browser(inner: sockets.socket, port: int) -> str:
    """The path of the DevTools socket of the browser that listens on a port. Raises `PortClosed`."""
    try:
        about = await asyncio.wait_for(_get(inner, port), ANSWER_S)
        found = urlsplit(msgspec.json.decode(about, type=_About).webSocketDebuggerUrl).path
    except (*_WRONG_ANSWERS, msgspec.MsgspecError, RecursionError) as error:
        raise _no_browser(port, f"{_ABOUT} gives no webSocketDebuggerUrl ({type(error).__name__})") from None
    if not _PATH.fullmatch(found):
        raise _no_browser(port, "its webSocketDebuggerUrl has no path")
    return found


def _no_browser(port: int, why: str) -> PortClosed:
    return PortClosed(
        f"what listens on port {port} is not a browser with DevTools: {why}",
        hint=f"start it with --remote-debugging-port={port}, and wait until that port answers",
    )


async def _get(inner: sockets.socket, port: int) -> bytes:
    talk, loop = h11.Connection(h11.CLIENT, max_incomplete_event_size=ABOUT_LIMIT), asyncio.get_running_loop()
    # A browser answers those who call it localhost, or by its address: no page has a name that leads here.
    asked = h11.Request(method="GET", target=_ABOUT, headers=[("Host", f"localhost:{port}")])
    await loop.sock_sendall(inner, (talk.send(asked) or b"") + (talk.send(h11.EndOfMessage()) or b""))
    body = b""
    while len(body) <= ABOUT_LIMIT:
        event = talk.next_event()
        if event is h11.NEED_DATA:
            talk.receive_data(await loop.sock_recv(inner, CHUNK))
        elif isinstance(event, h11.Data):
            body += event.data
        elif not isinstance(event, (h11.InformationalResponse, h11.Response)):
            return body
    raise ValueError(f"more than {ABOUT_LIMIT} bytes")


class DevTools:
    """One WebSocket to a browser, and the one outside that speaks for it."""

    def __init__(self, inner: sockets.socket, port: int) -> None:
        self._inner = inner
        self._port = port
        self._talk = WSConnection(ConnectionType.CLIENT)
        self._writing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._parts: list[Any] = []  # of one type
        self._size = 0

    async def open(self, path: str) -> None:
        """Shake hands with the browser. Raises `PortClosed`."""
        try:
            await asyncio.wait_for(self._shake(path), ANSWER_S)
        except _WRONG_ANSWERS as error:
            raise _no_browser(self._port, f"no WebSocket at {path[:80]!r} ({type(error).__name__})") from None

    async def _shake(self, path: str) -> None:
        await self._say(Request(host=f"localhost:{self._port}", target=path))
        while True:
            await self._hear()
            for event in self._talk.events():
                if isinstance(event, AcceptConnection):
                    return
                if isinstance(event, (RejectConnection, RejectData, CloseConnection)):
                    raise ValueError("refused")

    async def carry(self, socket: Socket) -> None:
        """Pass messages on until one side ends."""
        async with together(self._inward(socket), self._outward(socket)) as (inward, outward):
            await asyncio.wait({inward, outward}, return_when=asyncio.FIRST_COMPLETED)
            for side in (inward, outward):
                if side.done():
                    side.result()

    async def _inward(self, socket: Socket) -> None:
        while True:
            message = await socket.message()
            try:
                await self._say(TextMessage(message) if isinstance(message, str) else BytesMessage(message))
            except (OSError, ProtocolError):
                return  # the browser is gone

    async def _outward(self, socket: Socket) -> None:
        try:
            while True:
                for event in tuple(self._talk.events()):  # what came with the handshake, first
                    if isinstance(event, Ping):
                        await self._say(event.response())
                    if isinstance(event, CloseConnection):
                        return
                    if isinstance(event, Message):
                        await self._deliver(event, socket)
                await self._hear()
        except (OSError, ProtocolError):
            return  # an end like any other

    async def _deliver(self, part: Message[Any], socket: Socket) -> None:
        message = self._whole(part)
        if isinstance(message, str):
            await socket.send_text(message)
        elif message is not None:
            await socket.send_bytes(message)

    def _whole(self, part: Message[Any]) -> str | bytes | None:
        """The message that a part completes, if it does."""
        self._size += len(part.data)
        if self._size > BODY_LIMIT:
            raise InvalidRequest(f"the browser sent a message of more than {BODY_LIMIT >> 20} MiB")
        self._parts.append(part.data)
        if not part.message_finished:
            return None
        parts, self._parts, self._size = self._parts, [], 0
        joined: str | bytes = type(parts[0])().join(parts)
        return joined

    async def _hear(self) -> None:
        data = await self._loop.sock_recv(self._inner, CHUNK)
        if not data:
            raise ConnectionError("it hung up")
        self._talk.receive_data(data)

    async def _say(self, event: Event) -> None:
        async with self._writing:
            await self._loop.sock_sendall(self._inner, self._talk.send(event))
