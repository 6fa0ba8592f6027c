"""Wire dataclasses to plain JSON data and back, on the standard library.

The server reads and writes the same dataclasses with msgspec; this is the client's half, and a second opinion in tests.
`to_wire` leaves out None and empty containers: both mean "not given". `from_wire` checks every field and names the one
that is wrong; it ignores fields it does not know, so that an older client can read a newer server. `bytes` travel as
base64 text, as msgspec writes them.

Each class is compiled once, on first use, into a list of (field, converter); plain JSON fields have no converter.
"""

from __future__ import annotations

import binascii
import dataclasses
import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hotbed.errors import Error, ProtocolError

T = TypeVar("T")
_Read = Callable[[Any, str], Any]
_Write = Callable[[Any], Any]


class _Mismatch(ValueError):
    """A value is not of its field's type."""


def to_wire(value: Any) -> dict[str, Any]:
    """The JSON object of a wire dataclass."""
    kind: Any = type(value)
    out: dict[str, Any] = {}
    for name, write in _writers(kind):
        item = getattr(value, name)
        if item is None or item == () or item == {}:
            continue
        out[name] = item if write is None else write(item)
    return out


def from_wire(kind: type[T], data: object, *, error: type[Error] = ProtocolError) -> T:
    """The wire dataclass that a JSON object stands for. Raises `error`, naming the field."""
    hint: Any = kind
    try:
        value: T = _reader(hint)(data, "")
    except _Mismatch as mismatch:
        raise error(str(mismatch)) from None
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _writers(kind: Any) -> tuple[tuple[str, _Write | None], ...]:
    hints = _hints(kind)
    return tuple((item.name, _writer(hints[item.name])) for item in dataclasses.fields(kind))


@cache
def _writer(hint: Any) -> _Write | None:
    """How a value of this type becomes JSON data; None when it already is."""
    if hint is bytes:
        return lambda value: b64encode(value).decode("ascii")
    if dataclasses.is_dataclass(hint):
        return to_wire
    inner = [write for write in map(_writer, _parts(hint)) if write is not None]
    if not inner:
        return None
    if get_origin(hint) is tuple:
        return lambda value: [inner[0](item) for item in value]
    return inner[0]


def _parts(hint: Any) -> tuple[Any, ...]:
    """The types inside a union, tuple or mapping; `...` and literals are none."""
    if get_origin(hint) is Literal:
        return ()
    return tuple(part for part in get_args(hint) if part is not Ellipsis)


@cache
def _reader(hint: Any) -> _Read:
    origin = get_origin(hint)
    if dataclasses.is_dataclass(hint):
        return _read_object(hint)
    if origin in (Union, types.UnionType):
        return _read_union(hint)
    if origin is tuple:
        return _read_tuple(hint)
    if origin is Literal:
        return _read_literal(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _read_mapping(hint)
    return _SCALARS[hint]


def _read_object(kind: Any) -> _Read:
    hints = _hints(kind)
    plan = [
        (item.name, hints[item.name], _reader(hints[item.name]), _is_required(item))
        for item in dataclasses.fields(kind)
    ]

    def read(value: Any, where: str) -> Any:
        _expect(isinstance(value, dict), where, "an object", value)
        found = {}
        for name, hint, read_field, required in plan:
            if name in value:
                item = value[name]
                if type(item) is not hint:  # the common case needs no reader
                    item = read_field(item, f"{where}.{name}" if where else name)
                found[name] = item
            elif required:
                raise _Mismatch(f"{where}.{name} is missing" if where else f"{name} is missing")
        return kind(**found)

    return read


def _is_required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def _read_union(hint: Any) -> _Read:
    """Our unions are "this or null"."""
    reads = [_reader(part) for part in get_args(hint) if part is not types.NoneType]

    def read(value: Any, where: str) -> Any:
        return None if value is None else reads[0](value, where)

    return read


def _read_tuple(hint: Any) -> _Read:
    parts = get_args(hint)
    reads = [_reader(part) for part in _parts(hint)]
    homogeneous = Ellipsis in parts

    def read(value: Any, where: str) -> Any:
        _expect(isinstance(value, (list, tuple)), where, "a list", value)  # a tuple: not from JSON, but `to_wire`
        if homogeneous:
            return tuple(reads[0](item, f"{where}[{index}]") for index, item in enumerate(value))
        _expect(len(value) == len(reads), where, f"a list of {len(reads)}", value)
        return tuple(one(item, f"{where}[{index}]") for index, (one, item) in enumerate(zip(reads, value, strict=True)))

    return read


def _read_literal(hint: Any) -> _Read:
    allowed = get_args(hint)

    def read(value: Any, where: str) -> Any:
        _expect(isinstance(value, (str, int)) and value in allowed, where, " or ".join(map(str, allowed)), value)
        return value

    return read


def _read_mapping(hint: Any) -> _Read:
    item = _reader(get_args(hint)[1])

    def read(value: Any, where: str) -> Any:
        _expect(isinstance(value, dict), where, "an object", value)
        return {name: item(inner, f"{where}.{name}") for name, inner in value.items()}

    return read


def _read_bytes(value: Any, where: str) -> bytes:
    _expect(isinstance(value, str), where, "base64 text", value)
    try:
        return b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise _Mismatch(f"{where} is not base64") from None


def _read_bool(value: Any, where: str) -> bool:
    _expect(isinstance(value, bool), where, "true or false", value)
    return bool(value)


def _read_int(value: Any, where: str) -> int:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    _expect(whole and not isinstance(value, bool), where, "a whole number", value)
    return int(value)


def _read_float(value: Any, where: str) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    _expect(number, where, "a number", value)
    return value  # type: ignore[no-any-return]  # an int stays the int that the JSON had


def _read_str(value: Any, where: str) -> str:
    _expect(isinstance(value, str), where, "text", value)
    return str(value)


def _read_any(value: Any, where: str) -> Any:
    return value


_SCALARS: Mapping[Any, _Read] = {
    str: _read_str,
    int: _read_int,
    float: _read_float,
    bool: _read_bool,
    bytes: _read_bytes,
    Any: _read_any,
}


def _expect(condition: bool, where: str, wanted: str, value: object) -> None:
    if not condition:
        raise _Mismatch(f"{where or 'the body'} must be {wanted}, not {_brief(value)}")


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
