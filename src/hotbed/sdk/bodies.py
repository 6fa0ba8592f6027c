"""JSON bodies."""

from __future__ import annotations

import json
from typing import Any

from hotbed.errors import InvalidRequest, ProtocolError

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def json_body(value: object) -> bytes:
    """A JSON request body. Text that UTF-8 cannot carry is refused here, not by the node."""
    try:
        return _COMPACT(value).encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"text with the character {error.object[error.start]!r} cannot be sent: it is not Unicode text",
            hint="pass bytes instead of str",
        ) from None


def read_json(body: bytes) -> Any:
    """The data of a JSON answer."""
    try:
        return json.loads(body) if body else {}
    except ValueError:
        raise ProtocolError(f"the answer is not JSON: it begins with {body[:60]!r}") from None
