"""Values that cross a lane: plain JSON, plus bytes and numpy arrays, by value.

A frame's header is JSON, and most actions and observations are nothing else: they go out with one call of the C
encoder. Only when that refuses (bytes, numpy) or the text grows large is the value walked: what JSON cannot hold is
*spilled* into the frame's raw body, and a tag in its place says where it lies there:

    {"$": ["bytes", offset, length]}            bytes, bytearray, memoryview
    {"$": ["text", offset, length]}             a long str, as UTF-8: JSON would escape it up to six times as large
    {"$": ["array", dtype, shape, offset, n]}   a numpy array of numbers or booleans, C order
    {"$": ["dict", {...}]}                      a dict of the user's that has the key "$" itself

Tags are read only in a frame that says it has some ("spilled": true), so a plain value is never mistaken for one.
Nothing is ever pickled: whoever reads a frame must be able to distrust who wrote it. Without numpy an array arrives as
nested lists.
"""

from __future__ import annotations

import re
import struct
import sys
from math import prod
from typing import Any, Dict, List, Sequence

from .. import frames, jsontext

VALUE_LIMIT = 64 << 20  # of an action or an observation, as its bytes
FRAME_LIMIT = VALUE_LIMIT + (64 << 10)

_LENGTHS = struct.Struct("!II")
_LARGE = 256 << 10  # a frame above this is walked when JSON had to escape characters, to get long strings out
_LONG_TEXT = 4 << 10
_DTYPE = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f[248]|f16|c8|c16)")
_UNREADABLE = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    struct.error,
)
_EMPTY_LIMIT = 1 << 16
_LIST_CODES = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q"}
_LIST_CODES.update({"f2": "e", "f4": "f", "f8": "d"})


def pack(header: frames.Header) -> bytes:
    """One frame. Raises `TypeError` or `ValueError` naming what cannot cross, or what is too large."""
    try:
        try:
            head = "".join(_chunks(header, 0)).encode("ascii")
            data = _LENGTHS.pack(len(head), 0) + head
        except TypeError:
            data = b""
        if not data or len(data) > FRAME_LIMIT or (len(data) > _LARGE and b"\\u" in data):
            data = _pack_spilled(header)
    except RecursionError:
        raise ValueError("the value is nested too deeply, or contains itself") from None
    if len(data) > FRAME_LIMIT:
        raise ValueError(f"the value takes {len(data)} bytes, over the limit of {VALUE_LIMIT}")
    return data


def _refuse(value: Any) -> Any:
    raise TypeError(f"a value of type {type(value).__name__} is not JSON")


_chunks = jsontext.encoder(_refuse)


def _pack_spilled(header: frames.Header) -> bytes:
    spill = _Spill()
    plain = {name: spill.plain(value) for name, value in header.items()}
    return frames.pack({**plain, "spilled": True}, b"".join(spill.pieces))


class _Spill:
    """Takes out of a value what JSON cannot hold."""

    def __init__(self) -> None:
        self.pieces: List[bytes] = []
        self._offset = 0

    def plain(self, value: Any) -> Any:
        """The value as JSON data, with tags for what was spilled."""
        kind = type(value)
        if kind is str:
            return self._keep("text", value.encode("utf-8", "surrogatepass")) if len(value) > _LONG_TEXT else value
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, dict):
            inner = {name: self.plain(item) for name, item in value.items()}
            return {"$": ["dict", inner]} if "$" in inner else inner
        if isinstance(value, (list, tuple)):
            return [self.plain(item) for item in value]
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._keep("bytes", bytes(value))
        return self._numpy(value)

    def _keep(self, kind: str, data: bytes, *about: Any) -> Dict[str, Any]:
        tag = {"$": [kind, *about, self._offset, len(data)]}
        self.pieces.append(data)
        self._offset += len(data)
        return tag

    def _numpy(self, value: Any) -> Any:
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic):
            value = value.item() if value.dtype.kind in "biuf" and value.dtype.itemsize <= 8 else numpy.asarray(value)
            if not isinstance(value, numpy.ndarray):
                return value
        if numpy is None or not isinstance(value, numpy.ndarray):
            name = type(value).__name__
            raise TypeError(f"a value of type {name} is neither JSON nor bytes nor a numpy array of numbers")
        if not _DTYPE.fullmatch(value.dtype.str):
            raise TypeError(f"a numpy array of dtype {value.dtype} holds no plain numbers")
        return self._keep("array", value.tobytes(), value.dtype.str, list(value.shape))


def restore(header: frames.Header, body: bytes) -> frames.Header:
    """A received header with its spilled values put back. Raises `FrameError` on a tag that makes no sense."""
    if header.pop("spilled", False) is not True:
        return header
    try:
        return {name: _restored(value, body) for name, value in header.items()}
    except _UNREADABLE as error:
        raise frames.FrameError(f"a spilled value cannot be read: {error}") from None


def _restored(value: Any, body: bytes) -> Any:
    if type(value) is list:
        return [_restored(item, body) for item in value]
    if type(value) is not dict:
        return value
    if "$" not in value:
        return {name: _restored(item, body) for name, item in value.items()}
    kind, *about = value["$"]
    if kind == "dict":
        return {name: _restored(item, body) for name, item in about[0].items()}
    data = _slice(body, about[-2], about[-1])
    if kind == "bytes":
        return data
    if kind == "text":
        return data.decode("utf-8", "surrogatepass")
    if kind == "array":
        return _array(data, about[0], about[1])
    raise ValueError(f"unknown kind {kind!r}")


def _slice(body: bytes, offset: Any, length: Any) -> bytes:
    if type(offset) is not int or type(length) is not int or not 0 <= offset <= offset + length <= len(body):
        raise ValueError("it lies outside the body")
    return body[offset : offset + length]


def _array(data: bytes, dtype: Any, shape: Any) -> Any:
    if type(dtype) is not str or not _DTYPE.fullmatch(dtype):
        raise ValueError("its dtype is no plain number")
    if type(shape) is not list or len(shape) > 32 or any(type(side) is not int or side < 0 for side in shape):
        raise ValueError("its shape is no list of lengths")
    numpy = _numpy_if_any()
    item = int(dtype.lstrip("<>|=")[1:])
    if prod(shape) * item != len(data):
        raise ValueError("its shape and its length differ")
    if numpy is not None:
        return numpy.frombuffer(data, dtype=dtype).reshape(shape).copy()
    return _nested(data, dtype, shape)


def _numpy_if_any() -> Any:
    if "numpy" not in sys.modules:
        try:
            import numpy  # noqa: F401  # asked for by being there
        except ImportError:
            return None
    return sys.modules.get("numpy")


def _nested(data: bytes, dtype: str, shape: List[int]) -> Any:
    """An array as nested lists of Python numbers, for an interpreter without numpy."""
    code = _LIST_CODES.get(dtype.lstrip("<>|="))
    if code is None:
        raise ValueError(f"an array of {dtype} needs numpy")
    if not data and prod(side or 1 for side in shape) > _EMPTY_LIMIT:
        raise ValueError("an empty array of that shape is no small list")
    order = dtype[0] if dtype[0] in "<>" else "="
    numbers = struct.unpack(f"{order}{prod(shape)}{code}", data)
    return _shaped(numbers, shape)


def _shaped(numbers: Sequence[Any], shape: Sequence[int]) -> Any:
    if not shape:
        return numbers[0]
    size = prod(shape[1:])
    return [_shaped(numbers[row * size : (row + 1) * size], shape[1:]) for row in range(shape[0])]
