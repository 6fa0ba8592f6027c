"""The one range of a file's bytes that a request may ask for (RFC 9110, 14)."""

from __future__ import annotations

import re
from typing import NamedTuple

from starlette.responses import Response

from hotbed.errors import RangeUnsatisfiable
from hotbed.server.errors import error_response

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class Span(NamedTuple):
    """Bytes of a file, from one offset to before another."""

    start: int
    end: int


def parse_range(text: str | None, size: int) -> Span | None:
    """The one range that a header asks for; None for all of it, and for what is not understood (RFC 9110, 14.2).

    Raises `RangeUnsatisfiable` when nothing of it is there.
    """
    found = _RANGE.fullmatch(text.strip()) if text is not None else None
    if found is None or found.group(1) == found.group(2) == "":
        return None
    first, last = found.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if start >= size or end <= start:
        raise RangeUnsatisfiable(f"bytes {text!r:.60} of a file of {size}", hint="ask for its size with HEAD")
    return Span(start, end)


def unsatisfied(error: RangeUnsatisfiable, size: int) -> Response:
    """The answer to a range of which nothing is there, with the size to ask by (15.5.17)."""
    answer = error_response(error)
    answer.headers["content-range"] = f"bytes */{size}"
    return answer
