"""A WebSocket route as an ASGI application: let in, handle, and the boundary where failures are told.

Before a socket is accepted, a failure is an HTTP answer like any other's; after that, it is the socket's last message.
A handler is a coroutine function `(node, call)`; its `Gone` says that the client hung up: nobody is to be told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.types import Message, Receive, Scope, Send

from hotbed.errors import NotFound
from hotbed.node.node import Node
from hotbed.node.tenants import Caller
from hotbed.server.connection import Gone
from hotbed.server.errors import as_error, error_json, error_response
from hotbed.server.operation import CALLER

GOING_AWAY, FAILED = 1000, 1011

_encode = msgspec.json.Encoder().encode


class Socket:
    """One WebSocket, as its handler sees it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.query = QueryParams(scope["query_string"])
        self.headers = Headers(scope=scope)
        self.accepted = False
        self._receive = receive
        self._send = send
        self._writing = asyncio.Lock()

    async def accept(self) -> None:
        """Let the client in."""
        await self._send({"type": "websocket.accept"})
        self.accepted = True

    async def message(self) -> bytes | str:
        """The next message. Raises `Gone` when there will be none."""
        message = await self._receive()
        if message["type"] != "websocket.receive":
            raise Gone
        data: bytes | None = message.get("bytes")
        return data if data is not None else str(message.get("text", ""))

    async def send_bytes(self, data: bytes) -> None:
        """A binary message; waits while the client does not read."""
        async with self._writing:
            await self._say({"type": "websocket.send", "bytes": data})

    async def send_event(self, event: Any) -> None:
        """A text message with a value of the wire."""
        await self.send_text(_encode(event).decode())

    async def send_text(self, text: str) -> None:
        """A text message."""
        async with self._writing:
            await self._say({"type": "websocket.send", "text": text})

    async def close(self, code: int = GOING_AWAY) -> None:
        """Say goodbye."""
        await self._say({"type": "websocket.close", "code": code})

    async def _say(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:  # an ASGI server's word for a client that has hung up
            raise Gone from None


@dataclass(slots=True, kw_only=True)
class SocketCall:
    """One socket, and who opened it. Nobody in particular is the node's own user, as for a `Call`."""

    socket: Socket
    caller: Caller | None

    def segment(self, name: str) -> str:
        """A `{segment}` of the path."""
        return str(self.socket.scope["path_params"][name])


SocketHandler = Callable[[Node, SocketCall], Coroutine[Any, Any, None]]


class SocketOperation:
    """Serves one path's WebSockets."""

    def __init__(self, handler: SocketHandler, node: Node) -> None:
        self._handler = handler
        self._node = node

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        socket = Socket(scope, receive, send)
        try:
            await self._serve(socket, scope.get(CALLER))
        except Gone:
            return
        except Exception as failure:  # noqa: BLE001  the socket's boundary: every failure is told
            await error_response(failure)(scope, receive, send)

    async def _serve(self, socket: Socket, caller: Caller | None) -> None:
        """Raises what went wrong before the socket was accepted; what does later is told by it."""
        try:
            await self._handler(self._node, SocketCall(socket=socket, caller=caller))
            await socket.close()
        except Gone:
            raise
        except Exception as failure:  # the boundary again, of a socket that is open
            if not socket.accepted:
                raise
            error = msgspec.Raw(error_json(as_error(failure)).encode())
            await socket.send_event({"error": error, "event": "error"})
            await socket.close(FAILED)


async def refuse_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """No socket is served at this path."""
    await receive()
    refusal = NotFound(f"no socket is served at {scope['path'][:128]!r}", hint="see docs/reference/http.md")
    await error_response(refusal)(scope, receive, send)
