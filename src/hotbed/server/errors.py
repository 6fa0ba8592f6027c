"""Any failure as an answer. The one place where exceptions become statuses and bodies."""

from __future__ import annotations

import json
import logging
import math
import re

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from hotbed.errors import Error, InvalidRequest, InvalidSeed

log = logging.getLogger(__name__)

_SEED = re.compile(r"at `(seed|seeds|seeds\[[0-9]+\]|base_seed)`$")


def as_error(failure: Exception) -> Error:
    """What a failure is in our tree. What we did not foresee is logged here, once, and told to nobody."""
    if isinstance(failure, Error):
        return failure
    if isinstance(failure, msgspec.ValidationError):
        message = _plain(str(failure))
        if _SEED.search(message):  # by another type; what a seed's text must be is checked with the others
            return InvalidSeed(message, hint="in JSON a seed is text: 64 hex characters")
        return InvalidRequest(message)
    if isinstance(failure, msgspec.DecodeError):
        return InvalidRequest(f"the body is not JSON: {failure}", hint="send UTF-8 JSON; bytes go into _b64 fields")
    if isinstance(failure, ClientDisconnect):
        return InvalidRequest("the client went away in the middle of its request")
    log.error("event=unforeseen error=%r", failure, exc_info=failure)
    return Error("the node failed in a way it should not", hint="its log says more; please report it")


def error_response(failure: Exception) -> Response:
    """The answer to a request that failed."""
    error = as_error(failure)
    headers = {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
    return Response(error_json(error), error.status, headers=headers, media_type="application/json")


def error_json(error: Error) -> str:
    """An error body. msgspec would refuse it where a message names a file that is not UTF-8."""
    return json.dumps(error.to_wire())


def _plain(message: str) -> str:
    """msgspec's message with its JSON path as a field name: "$.files[0].path" is "files[0].path"."""
    return message.replace("`$.", "`").replace("`$[", "`[")
