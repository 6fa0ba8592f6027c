"""The published client's two wires as ASGI routes, beside our own.

The daemon's paths (`/v1/sessions`, `/v1/exec`) are nobody else's: they are served wherever we are, with the caller's
own rights. The gateway shares `/v1/templates` and `/v1/sandboxes` with our API, where the same request means nearly the
same but one thing, an exec, must be answered otherwise. Whose request it is, the door decides (see `door`).

Both are small tables of handlers that read and answer plain JSON; their shapes are in `wire.collimate`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from hotbed.errors import Error, InvalidRequest, QuotaExceeded, TierLimit
from hotbed.node.tenants import Caller
from hotbed.server.errors import as_error
from hotbed.server.operation import Call, Refuse
from hotbed.wire import collimate
from hotbed.wire.routes import Route


class Refused(Exception):
    """A wire's own refusal, in a code that our API does not have."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code

    def body(self) -> dict[str, str]:
        """The error body, in both envelopes."""
        return {"error": str(self), "error_code": self.code, "code": self.code, "message": str(self)}


def route(method: str, path: str, status: int = 200) -> Route:
    """A route of a published wire: no wire types of ours, the handler reads the body."""
    return Route(name=f"{method} {path}", method=method, path=path, status=status)


def json_object(raw: bytes) -> dict[str, Any]:
    """A body as a JSON object; no body is an empty one. Half a surrogate pair is text, as it is to the client."""
    try:
        body = json.loads(raw or b"{}")
    except ValueError as error:
        raise InvalidRequest(f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise InvalidRequest("the body must be a JSON object")
    return body


def refusing(codes: Mapping[str, tuple[str, int]], prefix: str) -> Refuse:
    """How a wire says that something failed."""

    def refuse(failure: Exception, caller: Caller | None) -> Response:
        if isinstance(failure, Refused):
            return Response(json.dumps(failure.body()), failure.status, media_type="application/json")
        error = as_error(failure)
        body, status = collimate.error_body(error, codes)
        if prefix == collimate.SANDBOX and _is_demo(error, caller):
            body.update(code="demo_tier_limit", error_code="demo_tier_limit")
        headers = {}
        if error.retry_after_s is not None:
            headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
        return Response(json.dumps(body), status, headers=headers, media_type="application/json")

    return refuse


def _is_demo(error: Error, caller: Caller | None) -> bool:
    return isinstance(error, (QuotaExceeded, TierLimit)) and caller is not None and caller.tenant.tier.name == "demo"


def session_id(call: Call, prefix: str) -> str:
    """Our id of the sandbox that a path names."""
    return collimate.inner_id(prefix, call.segment("id"))
