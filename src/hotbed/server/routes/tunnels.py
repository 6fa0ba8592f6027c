"""Ports of a sandbox: addresses that open one, and the tunnels behind them.

A tunnel is a WebSocket whose binary messages are the bytes of one TCP connection to a port inside. The published client
needs two things of it: a frame from us at least every 30 seconds, or its own timeout ends it, and a close when the
inside has ended. Our client says by `half_close=1` that it knows the text message `eof`, which ends one direction.
"""

from __future__ import annotations

import asyncio
import socket as sockets
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from urllib.parse import urlencode

from hotbed.errors import InvalidRequest
from hotbed.node.node import Node
from hotbed.node.sessions import Session
from hotbed.node.tenants import Caller
from hotbed.server.connection import together
from hotbed.server.operation import Call
from hotbed.server.routes import devtools
from hotbed.server.routes.devtools import CDP
from hotbed.server.sockets import Socket, SocketCall
from hotbed.wire import collimate
from hotbed.wire.checks import require
from hotbed.wire.tunnels import CONNECT_SOCKET, EOF, ConnectUrl, ConnectUrlRequest, check_protocol

CHUNK = 64 << 10
SILENCE_S = 10.0  # the published client gives up after 30
QUIET_S = 3.0
_NO_LINGER = struct.pack("ii", 0, 0)


async def connect_url(node: Node, call: Call) -> ConnectUrl:
    """An address that opens one port of a sandbox for a while."""
    session = node.sessions.get(call.segment("id"))
    request: ConnectUrlRequest = call.body
    return mint(
        node, call, session, call.segment("id"), port=request.port, ttl_s=request.ttl_s, protocol=request.protocol
    )


def mint(node: Node, call: Call, session: Session, named: str, *, port: int, ttl_s: float, protocol: str) -> ConnectUrl:
    """The address, in the name that the caller has for the sandbox. Nothing is started. Raises `TierLimit`."""
    if call.caller is not None:
        check_ingress(call.caller)
    ticket, expires = node.tickets.mint(session.id, port, ttl_s=ttl_s)
    path = CONNECT_SOCKET.format(id=named)
    query = urlencode({"port": port, "t": ticket, **({"protocol": CDP} if protocol == CDP else {})})
    moment = datetime.fromtimestamp(expires, timezone.utc).isoformat().replace("+00:00", "Z")
    return ConnectUrl(url=f"{origin(node, call)}{path}?{query}", expires_at=moment)


def origin(node: Node, call: Call) -> str:
    """Where this server is reached: as the settings say, else as the caller has just reached it."""
    if public := node.policy.public_url:
        return "ws" + public.removeprefix("http").rstrip("/")
    secure = call.request.url.scheme == "https" or call.request.headers.get("x-forwarded-proto") == "https"
    return f"{'wss' if secure else 'ws'}://{call.request.headers.get('host') or 'localhost'}"


def check_ingress(caller: Caller) -> None:
    """Raise `TierLimit` for a tenant that may not open ports."""
    if not caller.tenant.tier.ingress:
        raise caller.tenant.refusal("ingress", "opens no ports of sandboxes")


async def connect(node: Node, call: SocketCall) -> None:
    """One tunnel, by a ticket or by the caller's own right."""
    query = call.socket.query
    port = port_of(query.get("port", ""))
    protocol = query.get("protocol", "tcp")
    check_protocol(protocol)
    name = collimate.inner_id(collimate.SANDBOX, call.segment("id"))
    if "t" in query:
        node.tickets.check(query["t"], name, port)
        session = node.sessions.get(name)
    else:
        if call.caller is not None:
            call.caller.check_scope("run")
            check_ingress(call.caller)
        session = node.sessions.get(name, call.caller.sight if call.caller is not None else None)
    node.check_open()
    with session.in_use(), session.tunnel():
        if protocol == CDP:
            await browse(session, port, call.socket)
            return
        async with dialed(session, port) as inner:
            await call.socket.accept()
            await Tunnel(call.socket, inner, half_close=query.get("half_close") == "1").carry()


async def browse(session: Session, port: int, socket: Socket) -> None:
    """One WebSocket to the browser that listens on a port. Raises `PortClosed` before the client is let in."""
    async with dialed(session, port) as inner:
        path = await devtools.find_browser(inner, port)
    async with dialed(session, port) as inner:
        browser = devtools.DevTools(inner, port)
        await browser.open(path)
        await socket.accept()
        await browser.carry(socket)


@asynccontextmanager
async def dialed(session: Session, port: int) -> AsyncIterator[sockets.socket]:
    """A connection to a port inside. Raises `PortClosed`."""
    inner = await session.held.box.dial(port)
    try:
        yield inner
    finally:
        close(inner)


def port_of(text: str) -> int:
    """The port that a query names."""
    port = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    require(0 < port <= 65535, f"port must be 1 to 65535, not {text[:16]!r}")
    return port


def close(inner: sockets.socket) -> None:
    """Close our end at once.

    CAVEAT: what runs inside shares this socket's settings as long as it holds a copy of it, and a closing socket that
    lingers (SO_LINGER) would hold up the whole node.
    """
    inner.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, _NO_LINGER)
    inner.close()


class Tunnel:
    """One TCP connection over one WebSocket."""

    def __init__(self, socket: Socket, inner: sockets.socket, *, half_close: bool) -> None:
        self._socket = socket
        self._inner = inner
        self._half_close = half_close
        self._loop = asyncio.get_running_loop()
        self._said_s = self._heard_s = time.monotonic()

    async def carry(self) -> None:
        """Carry bytes both ways until both have ended, or one that ends the other."""
        async with together(self._inward(), self._outward(), self._keep_alive()) as (inward, outward, _):
            await asyncio.wait({inward, outward}, return_when=asyncio.FIRST_COMPLETED)
            if not outward.done() or self._half_close:
                await asyncio.wait({inward, outward}, return_when=asyncio.FIRST_EXCEPTION)
            for side in (inward, outward):
                if side.done():
                    side.result()

    async def _inward(self) -> None:
        """From the client; ends with `Gone` when it hangs up."""
        while True:
            message = await self._socket.message()
            self._heard_s = time.monotonic()
            try:
                if isinstance(message, bytes):
                    await self._loop.sock_sendall(self._inner, message)
                elif message == EOF:
                    self._inner.shutdown(sockets.SHUT_WR)
                else:
                    raise InvalidRequest("a tunnel carries binary messages")
            except OSError:
                return  # the inside is gone, and the other direction tells

    async def _outward(self) -> None:
        """To the client, until the inside has ended its side."""
        try:
            while data := await self._loop.sock_recv(self._inner, CHUNK):
                await self._socket.send_bytes(data)
                self._said_s = time.monotonic()
        except OSError:
            pass  # it was reset: an end like any other
        if self._half_close:
            await self._socket.send_text(EOF)

    async def _keep_alive(self) -> None:
        """Say something when nothing was said for long; over TLS, not while the client is writing.

        The published client reads and writes one TLS object from two threads, and a frame that arrives while it writes
        can end its tunnel. An empty message adds no bytes.
        """
        secure = self._socket.scope.get("scheme") == "wss"
        while True:
            await asyncio.sleep(SILENCE_S / 4)
            now = time.monotonic()
            if now - self._said_s >= SILENCE_S and not (secure and now - self._heard_s < QUIET_S):
                await self._socket.send_bytes(b"")
                self._said_s = now
