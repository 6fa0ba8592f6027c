"""JSON text, written and read as directly as the standard library allows.

`json.JSONEncoder.encode` builds its C encoder anew for each text, and `json.loads` looks for an encoding and for blanks
by way of two patterns. After a fork each of these functions and objects is a page to copy, so here the encoder is made
once and the scanner asked at once. An interpreter without them has the usual way.
"""

from __future__ import annotations

import json
import json.encoder
from typing import Any, Callable, Iterable

_usual = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_scan: Callable[[str, int], Any] = getattr(json.JSONDecoder(), "scan_once")  # noqa: B009  its stub does not list it


def encoder(default: Callable[[Any], Any]) -> Callable[[Any, int], Iterable[str]]:
    """What gives a value's text in pieces (called with 0 too), asking `default` about what JSON does not know."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        plain = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=default)
        return lambda value, _: (plain.encode(value),)
    text = json.encoder.encode_basestring_ascii
    found: Callable[[Any, int], Iterable[str]] = make(None, default, text, None, ":", ",", False, False, True)
    return found


_pieces = encoder(_usual.default)


def dumps(value: Any) -> bytes:
    """A value's text without blanks, in ASCII. Raises `TypeError`, `ValueError` and `RecursionError`."""
    return "".join(_pieces(value, 0)).encode()


def loads(data: bytes) -> Any:
    """The value of a text in UTF-8, in which surrogates may be lone. Raises `ValueError` and `RecursionError`."""
    text = data.decode("utf-8", "surrogatepass")
    try:
        value, end = _scan(text, 0)
        if end == len(text):
            return value
    except StopIteration:
        pass  # no value begins here
    return json.loads(text)  # takes blanks around a value, or says what is wrong
