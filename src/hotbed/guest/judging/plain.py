"""Plain data as JSON text: the only thing that crosses between a candidate and its judge.

None, bool, int, float, str and list stand for themselves; everything else is an object with one key, its tag:

    t tuple   d dict as pairs   s set   z frozenset   b bytes (hex)   B bytearray   c complex   i a wide int (hex)
    r range   n numpy array     v a value of the standard library (Decimal, Fraction, datetime ..., deque)
    f a float that JSON has no word for, u text with half a surrogate pair (hex): where strict readers are on the way
    N named tuple   l slice   T a builtin type or exception (its name)
    h an object that the sender keeps and lends    y an object that the receiver lent before    a argument number n

Exact builtin types come out, whatever went in: a subclass is reduced by the methods of its base class, so that nothing
it overrides is asked. Decoding never calls anything that the data names; sizes, depth and the number of elements are
capped, and sets and dicts whose keys collide on purpose are refused. JSON's own float text keeps -0.0, NaN and the
infinities. Flat lists take one type scan at C speed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, FrozenSet, List

from . import plain_arrays, plain_values, records
from .plain_text import BadData as BadData
from .plain_text import dumps as dumps
from .plain_text import parse as parse

DEPTH_LIMIT = 200
ELEMENT_LIMIT = 4_000_000

Lend = Callable[[Any], Any]
Borrow = Callable[[str, Any], Any]

_ATOMS = frozenset((str, bool, type(None), int, float))
_CONTAINERS = frozenset((list, dict))
_CHAIN_LIMIT = 64
_WIDE = 1 << 63
_SHORT = frozenset((str, bool, type(None), float))


class NotPlain(TypeError):
    """A value that cannot cross by value, and nobody lends it."""


class TooBig(ValueError):
    """A value that is deeper or larger than may cross, or that holds itself."""


def refuse_to_lend(value: Any) -> Any:
    """The default for what is not plain data."""
    raise NotPlain("a " + type(value).__name__ + " is not plain data")


def refuse_to_borrow(tag: str, value: Any) -> Any:
    """The default for references."""
    raise BadData("a reference where only plain data may be")


def encode(value: Any, lend: Lend = refuse_to_lend) -> bytes:
    """The text of a value. `lend` names what is not plain data; it returns an object with one key."""
    if type(value) is list and (_is_flat(value) or all(map(_is_flat, value))):
        return dumps(value)
    return dumps(pack(value, lend))


def _is_flat(value: Any) -> bool:
    """Whether a value is its own packed form, as far as a quick look tells: most arguments and answers."""
    kind = type(value)
    if kind in _SHORT:
        return True
    if kind is int:
        return bool(-_WIDE < value < _WIDE)
    if kind is not list or len(value) > ELEMENT_LIMIT:
        return False
    kinds = set(map(type, value))
    return bool(_SHORT.issuperset(kinds) or (_ATOMS.issuperset(kinds) and _narrow(value)))


def pack(value: Any, lend: Lend = refuse_to_lend) -> Any:
    """A value as JSON data with tags. Raises `TooBig`, or what `lend` raises."""
    if type(value) in _ATOMS and type(value) is not int:
        return value
    packer = _Packer(lend)
    packed = packer.pack(value, 0)
    if packer.flat_ints:  # the quick scan does not look at magnitudes; the text of a huge int is refused or slow
        packer = _Packer(lend, careful=True)
        packed = packer.pack(value, 0)
    return packed


def decode(text: bytes, borrow: Borrow = refuse_to_borrow) -> Any:
    """The value of a text that nobody vouches for. Raises `BadData`."""
    if len(text) > ELEMENT_LIMIT // 4 and text.count(b",") + text.count(b"[") + text.count(b"{") > ELEMENT_LIMIT:
        raise BadData(f"more than {ELEMENT_LIMIT} elements")
    data = parse(text)
    if b"{" not in text and text.count(b"[") < DEPTH_LIMIT:
        return data  # no tag anywhere
    return unpack(data, borrow)


def unpack(data: Any, borrow: Borrow = refuse_to_borrow) -> Any:
    """The value of JSON data with tags. Raises `BadData`."""
    if type(data) in _ATOMS:
        return data
    try:
        return _Unpacker(borrow).unpack(data, 0)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError) as error:
        raise error if isinstance(error, BadData) else BadData(f"bad data: {type(error).__name__}") from None


class _Packer:
    """One walk over one value."""

    def __init__(self, lend: Lend, careful: bool = False) -> None:
        self.lend = lend
        self.careful = careful
        self.room = ELEMENT_LIMIT
        self.flat_ints = False

    def pack(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _ATOMS:
            return value if kind is not int or -_WIDE < value < _WIDE else {"i": hex(value)}
        if depth > DEPTH_LIMIT:
            raise TooBig(f"deeper than {DEPTH_LIMIT} levels, or it holds itself")
        if kind is list:
            return self.items(value, depth + 1)
        write = _WRITERS.get(kind)
        return self.other(value, depth + 1) if write is None else write(self, value, depth + 1)

    def items(self, value: Any, depth: int) -> Any:
        """The elements of a list, tuple or set, packed. JSON writes a tuple as it writes a list."""
        self.room -= len(value)
        if self.room < 0:
            raise TooBig(f"more than {ELEMENT_LIMIT} elements, or it holds itself")
        kinds = set(map(type, value))
        if _ATOMS.issuperset(kinds):
            if int not in kinds:
                return value
            if not self.careful:
                self.flat_ints = self.flat_ints or not _narrow(value)
                return value
        return [self.pack(item, depth) for item in value]

    def other(self, value: Any, depth: int) -> Any:
        """What has no exact type of ours: numpy, values of the standard library, subclasses, and what is lent."""
        found = plain_arrays.pack(value)
        if found is None:
            found = plain_values.pack(value)
        if found is not None:
            tag, parts = found
            return self.pack(parts, depth) if tag == "" else {tag: self.items(parts, depth)}
        record = records.pack(value) if isinstance(value, tuple) else None
        if record is not None:
            return {"N": self.items(record, depth)}
        for base, reduce in _BASES:
            if isinstance(value, base):
                return self.pack(reduce(value), depth)
        return self.lend(value)


def _narrow(value: Any) -> bool:
    """Whether every int of a flat sequence is short enough to be written in decimal."""
    try:
        return bool(-_WIDE < min(value) and max(value) < _WIDE)
    except TypeError:  # ints among strings or None
        return all(type(item) is not int or -_WIDE < item < _WIDE for item in value)


def _write_dict(packer: _Packer, value: Dict[Any, Any], depth: int) -> Any:
    packer.room -= len(value)
    return {"d": [[packer.pack(key, depth), packer.pack(item, depth)] for key, item in value.items()]}


def _write_type(packer: _Packer, value: Any, depth: int) -> Any:
    known = plain_values.TYPES.get(value.__name__) is value
    return {"T": value.__name__} if known else packer.other(value, depth)


_WRITERS: Dict[type, Callable[[_Packer, Any, int], Any]] = {
    tuple: lambda packer, value, depth: {"t": packer.items(value, depth)},
    dict: _write_dict,
    set: lambda packer, value, depth: {"s": packer.items(list(value), depth)},
    frozenset: lambda packer, value, depth: {"z": packer.items(list(value), depth)},
    bytes: lambda packer, value, depth: {"b": value.hex()},
    bytearray: lambda packer, value, depth: {"B": value.hex()},
    complex: lambda packer, value, depth: {"c": [value.real, value.imag]},
    slice: lambda packer, value, depth: {"l": packer.items([value.start, value.stop, value.step], depth)},
    type: _write_type,
    range: lambda packer, value, depth: {"r": packer.items([value.start, value.stop, value.step], depth)},
}

# Base-class methods only: what a subclass overrides is never asked.
_BASES = (
    (int, lambda value: int.__pos__(value)),
    (float, lambda value: float.__pos__(value)),
    (str, lambda value: str.__str__(value)),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: tuple(tuple.__iter__(value))),
    (dict, lambda value: dict(dict.items(value))),
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (bytes, lambda value: bytes.join(b"", (value,))),
    (bytearray, lambda value: bytearray(bytearray.__getitem__(value, slice(None)))),
    (complex, lambda value: complex.__add__(value, -0.0)),
)


class _Unpacker:
    """One walk over data that nobody vouches for."""

    def __init__(self, borrow: Borrow) -> None:
        self.borrow = borrow

    def unpack(self, data: Any, depth: int) -> Any:
        kind = type(data)
        if kind is list:
            return data if _CONTAINERS.isdisjoint(map(type, data)) else self.items(data, depth)
        if kind is not dict:
            return data
        if depth > DEPTH_LIMIT or len(data) != 1:
            raise BadData("too deep, or not one tag")
        ((tag, value),) = data.items()
        read = _READERS.get(tag)
        return self.borrow(tag, value) if read is None else read(self, value, depth + 1)

    def items(self, data: Any, depth: int) -> List[Any]:
        """The elements of a list, unpacked."""
        if type(data) is not list or depth > DEPTH_LIMIT:
            raise BadData("too deep, or not a list")
        if _CONTAINERS.isdisjoint(map(type, data)):
            return data
        return [self.unpack(item, depth + 1) for item in data]


def _read_dict(unpacker: _Unpacker, value: Any, depth: int) -> Dict[Any, Any]:
    pairs = [(unpacker.unpack(key, depth), unpacker.unpack(item, depth)) for key, item in value]
    _refuse_collisions([key for key, _ in pairs])
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadData("a key twice")
    return found


def _read_set(unpacker: _Unpacker, value: Any, depth: int) -> FrozenSet[Any]:
    items = unpacker.items(value, depth)
    _refuse_collisions(items)
    return frozenset(items)


def _refuse_collisions(keys: List[Any]) -> None:
    """Keys of equal hash make a dict quadratic. Honest data has next to none; a few small chains cost nothing."""
    if len(keys) > _CHAIN_LIMIT and max(Counter(map(hash, keys)).values()) > _CHAIN_LIMIT:
        raise BadData("colliding keys")


def _read_hex(unpacker: _Unpacker, value: Any, depth: int) -> bytes:
    return bytes.fromhex(value)


def _read_wide(unpacker: _Unpacker, value: Any, depth: int) -> int:
    if type(value) is not str:
        raise BadData("a wide int is hexadecimal text")
    return int(value, 16)


def _read_complex(unpacker: _Unpacker, value: Any, depth: int) -> complex:
    real, imag = value
    if type(real) is not float or type(imag) is not float:
        raise BadData("a complex has two floats")
    return complex(real, imag)


def _read_record(unpacker: _Unpacker, value: Any, depth: int) -> Any:
    name, fields, values = unpacker.items(value, depth)
    if type(values) is not list:
        raise BadData("a named tuple has a list of values")
    return records.unpack(name, fields, values)


_READERS: Dict[str, Callable[[_Unpacker, Any, int], Any]] = {
    "t": lambda unpacker, value, depth: tuple(unpacker.items(value, depth)),
    "d": _read_dict,
    "s": lambda unpacker, value, depth: set(_read_set(unpacker, value, depth)),
    "z": _read_set,
    "b": _read_hex,
    "B": lambda unpacker, value, depth: bytearray(_read_hex(unpacker, value, depth)),
    "c": _read_complex,
    "f": lambda unpacker, value, depth: plain_values.NOT_FINITE[value],
    "i": _read_wide,
    "N": _read_record,
    "l": lambda unpacker, value, depth: slice(*unpacker.items(value, depth)),
    "T": lambda unpacker, value, depth: plain_values.TYPES[value],
    "u": lambda unpacker, value, depth: bytes.fromhex(value).decode("utf-8", "surrogatepass"),
    "r": lambda unpacker, value, depth: range(*unpacker.items(value, depth)),
    "n": lambda unpacker, value, depth: plain_arrays.unpack(unpacker.items(value, depth)),
    "v": lambda unpacker, value, depth: plain_values.unpack(unpacker.items(value, depth)),
}
