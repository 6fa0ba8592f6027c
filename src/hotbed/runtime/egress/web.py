"""HTTP that can be read: each request of a connection is held against the policy, not only the first.

Two hosts behind one address differ by what a request says, so a connection that was let go for one host must not carry
a request for another. Requests are therefore read (by h11, which is strict about what a request is), decided one by
one, and written anew; answers come back the same way. Each request gets a connection outside of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import h11

from hotbed.egress.decisions import Target, Verdict, Way, judge_method, settle
from hotbed.runtime.egress import sockets, tls
from hotbed.runtime.egress.flow import Flow
from hotbed.runtime.egress.masking import Mask
from hotbed.runtime.egress.relay import relay
from hotbed.runtime.egress.replies import answer, words_of
from hotbed.runtime.egress.targets import Refused, target_from

if TYPE_CHECKING:
    from hotbed.runtime.egress.ward import Ward

HEAD_S = 10.0
BODY_S = 120.0
HEAD_LIMIT = 1 << 16
_CHUNK = 1 << 18
_OURS = {
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"proxy-authorization",
    b"te",
    b"trailer",
    b"upgrade",
    b"expect",
}
Headers = list[tuple[bytes, bytes]]


class Web:
    """The server's side of one connection of a sandbox; `sni` is the name that it said, if it is inside TLS."""

    def __init__(self, ward: Ward, inner: socket.socket, sni: str = "") -> None:
        self.ward = ward
        self._inner = inner
        self.sni = sni
        self.mask = Mask(())
        self._talk = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)

    async def serve(self, dialled: Target | None) -> None:
        """Every request until the end. `dialled` is where the program went; None when it speaks to a proxy."""
        try:
            while True:
                request = await self._request()
                if request is None:
                    return
                with Flow(self.ward, self._inner, "https" if self.sni else "http") as flow:
                    if not await self._one(flow, request, dialled):
                        return
                if self._talk.our_state is not h11.DONE or self._talk.their_state is not h11.DONE:
                    return
                self._talk.start_next_cycle()
        except h11.ProtocolError as error:
            await self.say(400, f"not HTTP as it should be: {error}")

    async def _request(self) -> h11.Request | None:
        """The next request; None when there is none in time, which is a proper end between two."""
        try:
            event = await self._next(HEAD_S)
        except asyncio.TimeoutError:
            if self._talk.trailing_data[0]:
                raise
            return None
        return event if isinstance(event, h11.Request) else None

    async def _one(self, flow: Flow, request: h11.Request, dialled: Target | None) -> bool:
        """One request; whether another may follow."""
        flow.method = request.method.decode("ascii", "replace")
        try:
            target, said, path = asked_for(request, dialled, scheme="https" if self.sni else "http")
        except Refused as error:
            await self.say(400, str(error))
            return False
        way = settle(self.ward.policy, target, "http", said)
        if self.sni and said != self.sni:
            way = Way(
                verdict=Verdict(allowed=False, reason=f"its TLS is for {self.sni}, and inside it says {said[:100]}")
            )
        way = replace(way, verdict=judge_method(self.ward.policy, way.verdict, way.name, target.port, flow.method))
        async with AsyncExitStack() as open_outside:
            try:
                if self.ward.recording is not None and way.verdict.allowed:
                    return await answer(self, flow, request, target, way, path)
                outer = await open_outside.enter_async_context(self.outside(flow, target, way))
            except Refused as error:
                await self.say(403, f"refused by this sandbox's egress policy: {error}")
                return False
            except OSError as error:
                flow.failure = flow.failure or str(error)
                await self.say(502, f"the other side cannot be reached: {error}")
                return False
            return await self._exchange(flow, self.with_added(request, target), path, outer)

    @asynccontextmanager
    async def outside(self, flow: Flow, target: Target, way: Way) -> AsyncIterator[socket.socket]:
        """A connection to where a request is to go, in the clear. Raises `Refused` and `OSError`."""
        with await flow.dial(target, way) as outer:
            if not self.sni:
                yield outer
                return
            async with tls.plain(outer, tls.outside(), self.sni) as clear:
                yield clear

    def with_added(self, request: h11.Request, target: Target) -> h11.Request:
        """A request with what the node adds to it, which the answer is then kept free of."""
        added = self.ward.added(self.sni, target.port) if self.sni else []
        self.mask = Mask(value for _, value in added)
        return with_headers(request, added)

    async def _exchange(self, flow: Flow, request: h11.Request, path: bytes, outer: socket.socket) -> bool:
        theirs = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT)
        upgrade = any(name == b"upgrade" for name, _ in request.headers)
        await self._send_on(flow, theirs, sent_on(request, path, upgrade=upgrade), outer)
        said: list[Any] = []  # of what has come from outside, handed in together
        while True:
            event = theirs.next_event()
            if event is h11.NEED_DATA:
                await self.hand_in(flow, *said)
                said, event = [], await next_event(theirs, outer, BODY_S)
            if isinstance(event, h11.InformationalResponse) and event.status_code == 101 and upgrade:
                await self.hand_in(flow, *said)
                return await self._switch(flow, event, theirs, outer)
            if event in (h11.PAUSED, h11.NEED_DATA) or isinstance(event, h11.ConnectionClosed):
                await self.hand_in(flow, *said)
                return False
            said += self._handed_in(event)
            if isinstance(event, h11.EndOfMessage):
                await self.hand_in(flow, *said)
                return True

    async def _send_on(self, flow: Flow, theirs: h11.Connection, request: h11.Request, outer: socket.socket) -> None:
        await self._write(outer, theirs.send(request), flow.count_up)
        await self.ask_for_body()
        async for event in self.body():
            await self._write(outer, theirs.send(event), flow.count_up)

    async def ask_for_body(self) -> None:
        """Let a program that waits for a word send the rest."""
        if self._talk.they_are_waiting_for_100_continue:
            await self._reply(h11.InformationalResponse(status_code=100, headers=[]))

    async def hand_in(self, flow: Flow, *events: Any) -> None:
        """Send an answer, or a part of one, to the sandbox; the end too, as soon as nothing may follow."""
        await self._write(self._inner, b"".join(filter(None, map(self._talk.send, events))), flow.count_down)
        if self._talk.our_state is h11.MUST_CLOSE:
            with contextlib.suppress(OSError):  # it has hung up already
                self._inner.shutdown(socket.SHUT_WR)

    def _handed_in(self, event: Any) -> list[Any]:
        """An event of an answer as the sandbox gets it: without what was added to its request."""
        if isinstance(event, (h11.Response, h11.InformationalResponse)):
            return [_received(event, self.mask)]
        if not self.mask:
            return [event]
        if isinstance(event, h11.Data):
            return [h11.Data(data=self.mask.feed(bytes(event.data)))]
        return [h11.Data(data=self.mask.rest()), event] if isinstance(event, h11.EndOfMessage) else [event]

    async def _switch(self, flow: Flow, event: Any, theirs: h11.Connection, outer: socket.socket) -> bool:
        """Both sides have agreed to speak something else."""
        await self._write(self._inner, self._talk.send(event), flow.count_down)
        for connection, sink, count in ((theirs, self._inner, flow.count_down), (self._talk, outer, flow.count_up)):
            await self._write(sink, connection.trailing_data[0], count)
        await relay(self._inner, outer, self.ward.pipes, up=flow.count_up, down=flow.count_down)
        return False

    async def body(self) -> AsyncIterator[Any]:
        """What a request brings after its head, to its end. Raises `Refused` when it is broken off."""
        while True:
            event = await self._next(BODY_S)
            if isinstance(event, (h11.Data, h11.EndOfMessage)):
                yield event
            if isinstance(event, h11.EndOfMessage):
                return
            if not isinstance(event, h11.Data):
                raise Refused("a request that was broken off")

    async def _next(self, patience_s: float) -> Any:
        return await next_event(self._talk, self._inner, patience_s)

    async def say(self, status: int, text: str) -> None:
        """An answer of our own, and no more after it."""
        if self._talk.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = text.encode() + b"\n"
        headers = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body)))]
        headers.append(("connection", "close"))
        await self._reply(h11.Response(status_code=status, headers=headers, reason=words_of(status)))
        await self._reply(h11.Data(data=body))
        await self._reply(h11.EndOfMessage())

    async def _reply(self, event: Any) -> None:
        await self._write(self._inner, self._talk.send(event), None)

    async def _write(self, sink: socket.socket, data: bytes | None, count: Any) -> None:
        if data:
            if count is not None:
                count(len(data))
            await sockets.send(sink, data, BODY_S)


async def next_event(connection: h11.Connection, sock: socket.socket, patience_s: float) -> Any:
    """The next event of a connection. All the waits for it together are within the patience."""
    deadline = time.monotonic() + patience_s
    while True:
        event = connection.next_event()
        if event is not h11.NEED_DATA:
            return event
        connection.receive_data(await sockets.receive(sock, _CHUNK, max(0.001, deadline - time.monotonic())))


def with_headers(request: h11.Request, added: Headers) -> h11.Request:
    """The request with these headers instead of its own of the same names."""
    if not added:
        return request
    names = {name for name, _ in added}
    names.add(b"accept-encoding")  # what comes back is looked through
    kept = [(name, value) for name, value in request.headers if name not in names]
    return h11.Request(method=request.method, target=request.target, headers=[*kept, *added])


def asked_for(request: h11.Request, dialled: Target | None, scheme: str = "http") -> tuple[Target, str, bytes]:
    """Where a request is to go, whose name it says, and its path. Raises `Refused` for one that says it in two ways."""
    host = next((value.decode("latin-1") for name, value in request.headers if name == b"host"), "")
    raw = request.target.decode("latin-1")
    if raw.startswith("/") or (raw == "*" and request.method == b"OPTIONS"):
        if dialled is None:
            raise Refused("this is a proxy: it needs a whole URL")
        named = target_from(_host_of(host), dialled.port) if host else None
        said = named.name if named is not None else ""
        if named is not None and named.address is not None and named.address != dialled.address:
            raise Refused(f"the Host {host[:80]!r} is not where the connection goes")
        return dialled, said, request.target
    parts = urlsplit(raw)
    if parts.scheme != scheme or not parts.hostname or "@" in parts.netloc:
        raise Refused(f"{raw[:80]!r} is no URL that can be fetched here")
    target = target_from(parts.hostname, parts.port or (443 if scheme == "https" else 80))
    if host and target_from(_host_of(host), target.port) != target:
        raise Refused("its URL and its Host differ")
    if dialled is not None and target != dialled and (dialled.name or target.address is not None):
        raise Refused("its URL is not where the connection goes")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return dialled or target, target.name, path.encode("latin-1")


def _host_of(value: str) -> str:
    """A Host header without its port."""
    if value.startswith("["):
        return value.partition("]")[0][1:]
    return value.partition(":")[0]


def sent_on(request: h11.Request, path: bytes, *, upgrade: bool) -> h11.Request:
    """The request as it is sent outside: its own headers, and a connection that is for it alone."""
    headers: Headers = [(name, value) for name, value in request.headers if name not in _OURS]
    if upgrade:
        headers += [(name, value) for name, value in request.headers if name == b"upgrade"]
    headers.append((b"connection", b"upgrade" if upgrade else b"close"))
    return h11.Request(method=request.method, target=path, headers=headers)


def _received(response: Any, mask: Mask) -> Any:
    """An answer as it is handed in: what it says of its connection is about ours outside."""
    kept = [(name, value) for name, value in response.headers if name not in (b"connection", b"keep-alive")]
    headers = [(name, mask.whole(value)) for name, value in kept]
    return type(response)(status_code=response.status_code, headers=headers, reason=response.reason)
