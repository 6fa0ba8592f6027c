"""Numpy arrays and scalars by value, where numpy may be missing on either side.

An array is written as [dtype, shape, base64 of its bytes in C order], or [null, shape, nested list] where the elements
are not numbers. The reader checks all three against each other before it builds anything. A judge without numpy gets
nested lists.
"""

from __future__ import annotations

import base64
import re
import struct
import sys
from typing import Any, List, Optional, Tuple

_DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|c8|c16)")
_CODES = {"b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q"}
_CODES.update({"f2": "e", "f4": "f", "f8": "d", "c8": "ff", "c16": "dd"})


def pack(value: Any) -> Optional[Tuple[str, Any]]:
    """("n", parts) of an array, ("", scalar) of a numpy scalar, else None. Never imports numpy."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "ndarray"):
        return None
    if isinstance(value, numpy.generic):
        scalar = value.item()
        return None if isinstance(scalar, numpy.generic) else ("", scalar)
    if not isinstance(value, numpy.ndarray):
        return None
    dtype = value.dtype.str
    if _DTYPE.fullmatch(dtype):
        return "n", [dtype, list(value.shape), base64.b64encode(value.tobytes()).decode("ascii")]
    return "n", [None, list(value.shape), value.tolist()]


def unpack(parts: List[Any]) -> Any:
    """The array of parts that nobody vouches for: numpy's if numpy can be imported here, else nested lists."""
    dtype, shape, data = parts
    if type(shape) is not list or len(shape) > 32 or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError("not a shape")
    numpy = _numpy()
    if dtype is None:
        return data if numpy is None else numpy.array(data)
    if type(dtype) is not str or not _DTYPE.fullmatch(dtype):
        raise ValueError("not a dtype")
    raw = base64.b64decode(data, validate=True)
    code = _CODES[dtype[1:]]
    count = 1
    for size in shape:
        count *= size
    if count * struct.calcsize("=" + code) != len(raw):
        raise ValueError("shape and bytes differ")
    if numpy is not None:
        return numpy.frombuffer(raw, dtype=dtype).reshape(shape).copy()
    return _nested(_numbers(dtype, code, raw), shape)


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _numbers(dtype: str, code: str, raw: bytes) -> List[Any]:
    order = ">" if dtype[0] == ">" else "<"
    found = [item for item in struct.iter_unpack(order + code, raw)]
    return [complex(*item) if len(item) == 2 else item[0] for item in found]


def _nested(numbers: List[Any], shape: List[int]) -> Any:
    """Numbers in C order as lists of lists; a 0-d array is its number."""
    if not shape:
        return numbers[0]
    for size in reversed(shape[1:]):
        numbers = (
            [numbers[i : i + size] for i in range(0, len(numbers), size)] if size else [[] for _ in range(shape[0])]
        )
    return numbers
