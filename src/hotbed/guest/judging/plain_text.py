"""JSON text, written and read as fast as the standard library can."""

from __future__ import annotations

import json
from typing import Any, Callable

from .. import jsontext

_scan: Callable[[str, int], Any] = getattr(json.JSONDecoder(), "scan_once")  # noqa: B009  its stub does not list it


class BadData(ValueError):
    """Text that is not an encoding of plain data."""


#: Packed data as text: `json.dumps` without blanks.
dumps = jsontext.dumps


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
