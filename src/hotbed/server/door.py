"""The door of a TCP listener: who asks, by which key, and in whose words to answer.

A Unix socket has no door. Only its owner can connect to it, and he may do anything.

*Who.* Once a key was ever made on this node, every request needs one that is good; only `GET /v1/health` without a key
is told that somebody is here, or about to go, and nothing else. A node without keys lets everybody in: that is for
loopback, and serving refuses it elsewhere (see `serving`).

*In whose words.* A request with a Bearer key is the published gateway client's, which cannot be changed, unless it says
with the header `X-Hotbed-API` that it speaks our API, which ours can.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hotbed.errors import Error, Unauthorized
from hotbed.node.keys.keyring import Keyring
from hotbed.node.tenants import Caller, Tenants
from hotbed.server.errors import error_response
from hotbed.server.operation import CALLER, drain
from hotbed.wire.routes import API_HEADER

LOG_EVERY_S = 1.0
_OURS = API_HEADER.encode()
_BEARER = b"bearer "

log = logging.getLogger(__name__)


class Door:
    """Lets requests in, to our API or to the published gateway's."""

    def __init__(
        self,
        keyring: Keyring | None,
        tenants: Tenants,
        *,
        own: ASGIApp,
        gateway: ASGIApp,
        is_draining: Callable[[], bool],
    ) -> None:
        self._keyring = keyring
        self._tenants = tenants
        self._own = own
        self._gateway = gateway
        self._is_draining = is_draining
        self._refused: Counter[str] = Counter()  # by code, since the last line of that code
        self._logged_s: dict[str, float] = {}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "websocket":
            return self._socket(scope, receive, send)
        if scope["type"] != "http":
            return self._own(scope, receive, send)
        key, ours = _told(scope)
        try:
            caller = self._caller(key)
        except Error as error:
            return self._refuse(scope, receive, send, key, error)
        if caller is not None:
            scope[CALLER] = caller
        app = self._own if ours or key is None else self._gateway
        return app(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, key: bytes | None, error: Error) -> None:
        await drain(Request(scope, receive))
        await self._refusal(scope, key, error)(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A ticket in the address is as good as a key, for the one thing that it is for: its route checks it."""
        key, _ = _told(scope)
        if key is not None or not _has_ticket(scope):
            try:
                caller = self._caller(key)
            except Error as error:
                await receive()
                return await self._refusal(scope, key, error)(scope, receive, send)
            if caller is not None:
                scope[CALLER] = caller
        await self._own(scope, receive, send)

    def _caller(self, key: bytes | None) -> Caller | None:
        """Who it is. Raises `Unauthorized`, `Forbidden`, `RateLimited`."""
        if self._keyring is None or not self._keyring.needed:
            return None
        if key is None:
            hint = "HOTBED_API_KEY, or `Authorization: Bearer KEY`; without one, this node serves its Unix socket only"
            raise Unauthorized("this server asks for a key", hint=hint)
        found = self._keyring.find(key.decode("latin-1"))
        tenant = self._tenants.get(found.tenant, found.tier)
        tenant.spend()
        return Caller(tenant=tenant, scopes=found.scopes, key_id=found.id)

    def _refusal(self, scope: Scope, key: bytes | None, error: Error) -> Response:
        if key is None and scope.get("method") == "GET" and scope["path"] in ("/v1/health", "/health"):
            status = b"draining" if self._is_draining() else b"ok"
            return Response(b'{"status":"%b"}' % status, media_type="application/json")
        code, now = error.code, time.monotonic()
        self._refused[code] += 1
        if now - self._logged_s.get(code, float("-inf")) >= LOG_EVERY_S:  # who is refused must not fill the disk
            log.warning("event=refused code=%s path=%r times=%d", code, scope["path"][:128], self._refused.pop(code))
            self._logged_s[code] = now
        return error_response(error)


def _has_ticket(scope: Scope) -> bool:
    """Whether an address is one that `connect_url` gives."""
    parts = scope["path"].split("/")
    return (
        parts[:3] == ["", "v1", "sandboxes"] and parts[4:] == ["connect"] and "t" in QueryParams(scope["query_string"])
    )


def _told(scope: Scope) -> tuple[bytes | None, bool]:
    """The key that came with a request, and whether it says that it speaks our API."""
    key, ours = None, False
    for name, value in scope["headers"]:
        if name == b"authorization":
            key = value[len(_BEARER) :].strip() if value[: len(_BEARER)].lower() == _BEARER else value
        elif name == _OURS:
            ours = True
    return key, ours
