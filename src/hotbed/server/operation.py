"""One route of the table as an ASGI application: decode, handle, encode, and the boundary where failures are answered.

A handler is a coroutine function `(node, call) -> wire value or Response`. It never sees JSON. A request that names no
lease has nobody to end its sandbox when the client goes away, so those are watched for a disconnect; the others are
ended by their lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hotbed.errors import TooLarge
from hotbed.node import trace
from hotbed.node.leases import Lease, tenant_id
from hotbed.node.node import Node
from hotbed.node.once import Once, check_key
from hotbed.node.tenants import Caller, Tenant
from hotbed.server.connection import Gone, until_hung_up
from hotbed.server.errors import error_response
from hotbed.server.tally import Tally
from hotbed.wire.checks import require
from hotbed.wire.routes import KEY_HEADER, LEASE_HEADER, Route

BODY_LIMIT = 64 << 20
DRAIN_S = 5.0
#: What is done once under an idempotency key, on our wire and the published ones.
KEYED = frozenset(
    ("POST", path)
    for path in (
        "/v1/sandboxes",
        "/v1/sandboxes/{id}/exec",
        "/v1/sandboxes/{id}/fork",
        "/v1/sandboxes/{id}/jobs",
        "/v1/rollouts",
        "/v1/sessions",
        "/v1/sessions/{id}/exec",
        "/v1/exec",
        "/exec",
    )
)
CALLER = "hotbed.caller"  # in the scope, put there by the door of a listener that asks for keys

_LEASE, _KEY, _TRACE = LEASE_HEADER.encode(), KEY_HEADER.encode(), trace.HEADER.encode()
_READ = frozenset((_LEASE, _KEY, _TRACE))
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True, kw_only=True)
class Call:
    """One request: its decoded body, the lease it was made under, and who made it.

    Nobody in particular (None) is whoever may use the node as a whole: its own user, through the Unix socket, or anyone
    where no keys were ever made.
    """

    request: Request
    body: Any
    lease: Lease | None
    caller: Caller | None = None

    @property
    def tenant(self) -> Tenant | None:
        """Whose things this request makes; nobody's for None."""
        return self.caller.tenant if self.caller is not None else None

    @property
    def sight(self) -> Tenant | None:
        """Whose things this request may see and end; everybody's for None."""
        return self.caller.sight if self.caller is not None else None

    def sees(self, lease: Lease | None) -> bool:
        """Whether what lives under a lease is the caller's to see."""
        return self.sight is None or (lease is not None and lease.tenant is self.sight)

    def segment(self, name: str) -> str:
        """A `{segment}` of the path."""
        return str(self.request.path_params[name])


Handler = Callable[[Node, Call], Coroutine[Any, Any, Any]]
Admit = Callable[[Node, Route, Call], Coroutine[Any, Any, Call]]
Decode = Callable[[bytes], Any]
Refuse = Callable[[Exception, "Caller | None"], Response]


def refuse_plainly(failure: Exception, caller: Caller | None) -> Response:
    """The answer to a request that failed, in our own words."""
    return error_response(failure)


class Operation:
    """Serves one route."""

    def __init__(
        self,
        route: Route,
        handler: Handler,
        node: Node,
        *,
        admit: Admit,
        watched: bool = False,
        refuse: Refuse = refuse_plainly,
        decode: Decode | None = None,
        once: Once[bytes] | None = None,
    ) -> None:
        self.route = route
        self._handler = handler
        self._node = node
        self._admit = admit
        self._watched = watched
        self._refuse = refuse
        if route.request is not None:
            decode = msgspec.json.Decoder(route.request).decode
        self._decode = decode
        self._once = once if (route.method, route.path) in KEYED else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tally = Tally(receive, send)
        request = Request(scope, tally.receive)
        told = {name: value for name, value in reversed(scope["headers"]) if name in _READ}
        if _TRACE in told:
            trace.CURRENT.set(trace.accept(told[_TRACE].decode("latin-1")))
        if self._node.stats.heard is not None:
            trace.begin()
        caller = scope.get(CALLER)
        answer: bytes | Response
        try:
            answer = await self._respond(request, told, caller)
        except (Gone, ClientDisconnect):
            return self._count(tally, caller)
        except Exception as failure:  # noqa: BLE001  the request boundary: every failure becomes an answer
            answer = self._refuse(failure, caller)
            if not tally.whole:
                await drain(request)
        try:
            if isinstance(answer, Response):
                await answer(scope, tally.receive, tally.send)
            else:
                await tally.answer(self.route.status, answer)
        finally:
            self._count(tally, caller)

    def _count(self, tally: Tally, caller: Caller | None) -> None:
        self._node.stats.requests[self.route.name, tally.status] += 1
        whose = caller.tenant.id if caller is not None else ""
        self._node.meter.moved(whose, received=tally.received, sent=tally.sent)
        if (heard := self._node.stats.heard) is not None:
            heard(route=self.route.name, status=tally.status, begun_ns=tally.begun_ns, tenant=whose)

    async def _respond(self, request: Request, told: Mapping[bytes, bytes], caller: Caller | None) -> bytes | Response:
        lease = self._node.leases.get(told[_LEASE].decode("latin-1") if _LEASE in told else None)
        raw = await read_body(request) if self._decode is not None else b""
        body = self._decode(raw) if self._decode is not None else None
        call = Call(request=request, body=body, lease=lease, caller=caller)
        if caller is not None:
            call = await self._admit(self._node, self.route, call)
        once, key = self._once, told.get(_KEY)
        if once is not None and key is not None:
            work: Coroutine[Any, Any, bytes | Response] = self._keyed_answer(call, raw, once, key.decode("latin-1"))
        else:
            work = self._answer(call)
        return await (until_hung_up(request.receive, work) if self._watched else work)

    async def _answer(self, call: Call) -> bytes | Response:
        answer = await self._handler(self._node, call)
        return answer if isinstance(answer, Response) else _encode(answer)

    async def _keyed_answer(self, call: Call, raw: bytes, once: Once[bytes], key: str) -> bytes:
        """The same under an idempotency key: done once, and not given up when the client is. See `node.once`."""

        async def work() -> bytes:
            answer = await self._answer(call)
            assert isinstance(answer, bytes), "a stream was refused"
            return answer

        check_key(key)
        require(
            not getattr(call.body, "stream", False),
            "what is streamed cannot be asked for twice",
            "leave out stream or the idempotency key, or start a job",
        )
        under = call.lease.id if call.lease is not None and call.lease.held else ""
        asked = f"{self.route.method} {call.request.scope['path']}\n".encode() + raw
        return await once.do(tenant_id(call.lease), f"{under} {key}", asked, work, here=not self._watched)


async def read_body(request: Request, limit: int = BODY_LIMIT) -> bytes:
    """The whole body. Raises `TooLarge` before holding more than `limit`."""
    for name, value in request.scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > limit:
            raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return b"".join((*chunks, chunk)) if chunks else chunk
        chunks.append(chunk)


async def drain(request: Request) -> None:
    """Read what is left of a body before it is answered: who still writes it would find the connection closed instead.

    For so long and so much only; who sends more than that is not waiting for the answer.
    """
    try:
        await asyncio.wait_for(_rest(request), DRAIN_S)
    except (RuntimeError, ClientDisconnect, asyncio.TimeoutError):
        return  # it was read already, or nobody is there


async def _rest(request: Request) -> None:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > BODY_LIMIT:
            return


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"the body is over {limit >> 20} MiB",
        hint="Sandbox.upload_bytes streams a file of any size (PUT /v1/sandboxes/{id}/files)",
    )
