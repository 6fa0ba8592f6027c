"""Values of the standard library that cross by value: numbers, dates and queues that honest programs return.

Each is written as [name, parts...] with plain parts, and read by a constructor of this table. The data never names
anything outside it.
"""

from __future__ import annotations

import builtins
import collections
import datetime
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

_TEXT_LIMIT = 100_000


def pack(value: Any) -> Optional[Tuple[str, Any]]:
    """("v", parts) of a value that this table knows, else None."""
    kind = type(value)
    write = _WRITERS.get((kind.__module__, kind.__name__))
    if write is None or kind is not _kind(kind.__module__, kind.__name__):
        return None
    return "v", [kind.__name__, *write(value)]


def unpack(parts: List[Any]) -> Any:
    """The value of parts that nobody vouches for."""
    return _READERS[parts[0]](*parts[1:])


def _kind(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, None)


_WRITERS: Dict[Tuple[str, str], Callable[[Any], List[Any]]] = {
    ("decimal", "Decimal"): lambda value: [str(value)],
    ("fractions", "Fraction"): lambda value: [value.numerator, value.denominator],
    ("datetime", "datetime"): lambda value: [value.isoformat()],
    ("datetime", "date"): lambda value: [value.isoformat()],
    ("datetime", "time"): lambda value: [value.isoformat()],
    ("datetime", "timedelta"): lambda value: [value.days, value.seconds, value.microseconds],
    ("collections", "deque"): lambda value: [list(value), value.maxlen],
}


def _read_decimal(text: str) -> Any:
    import decimal

    if type(text) is not str or len(text) > _TEXT_LIMIT:
        raise ValueError("a Decimal is text")
    return decimal.Decimal(text)


def _read_fraction(numerator: int, denominator: int) -> Any:
    import fractions

    if type(numerator) is not int or type(denominator) is not int:
        raise ValueError("a Fraction has two ints")
    return fractions.Fraction(numerator, denominator)


_READERS: Dict[str, Callable[..., Any]] = {
    "Decimal": _read_decimal,
    "Fraction": _read_fraction,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": datetime.timedelta,
    "deque": collections.deque,
}

NOT_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}

#: Types that are the same on both sides. Not those that end an iteration: see `failures`.
TYPES: Dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(
            int,
            float,
            complex,
            bool,
            str,
            bytes,
            bytearray,
            list,
            tuple,
            dict,
            set,
            frozenset,
            range,
            object,
            type(None),
        ),
        *(each for each in vars(builtins).values() if isinstance(each, type) and issubclass(each, Exception)),
    )
    if not issubclass(kind, (StopIteration, StopAsyncIteration))
}
