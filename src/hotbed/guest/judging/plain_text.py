"""JSON text, written and read as fast as the standard library can."""

from __future__ import annotations

import json
from typing import Any, Callable

_encoder = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_scan: Callable[[str, int], Any] = getattr(json.JSONDecoder(), "scan_once")  # noqa: B009  its stub does not list it


class BadData(ValueError):
    """Text that is not an encoding of plain data."""


def _make_dumps() -> Callable[[Any], bytes]:
    """`JSONEncoder.encode` builds its C encoder anew for each text; ours is built once, where there is one."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return lambda packed: _encoder.encode(packed).encode("ascii")
    text = json.encoder.encode_basestring_ascii
    chunks = make(None, _encoder.default, text, None, ":", ",", False, False, True)
    return lambda packed: "".join(chunks(packed, 0)).encode("ascii")


#: Packed data as text: `json.dumps` without blanks.
dumps = _make_dumps()


def parse(text: bytes) -> Any:
    """The JSON data of a text. Raises `BadData`."""
    try:
        line = text.decode("utf-8")
        data, end = _scan(line, 0)
    except (ValueError, RecursionError, MemoryError, StopIteration) as error:
        raise BadData("not JSON: " + type(error).__name__) from None
    if end != len(line):
        raise BadData("more than one value")
    return data
