"""The codec: what crosses, what is refused, and that nothing of the sender's runs."""

from __future__ import annotations

import collections
import enum
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.guest.judging import plain

leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers()
    | st.integers(min_value=1 << 62, max_value=1 << 9000)
)  # fmt: skip
keys = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.tuples(st.integers(), st.text())
data = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(keys, inner)
        | st.sets(keys)
        | st.frozensets(keys)
    ),
    max_leaves=30,
)


def same(a: Any, b: Any) -> bool:
    """Equal, of the same types all the way down, NaN and the sign of zero included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b) or (a != a and b != b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(map(same, a.keys(), b.keys())) and all(map(same, a.values(), b.values()))
    return bool(a == b)


@given(data)
def test_what_crosses_comes_out_as_it_went_in(value: Any) -> None:
    """Types, NaN, -0.0, wide ints, keys and order of dicts."""
    assert same(plain.decode(plain.encode(value)), value)


@given(data)
def test_the_text_holds_no_newline(value: Any) -> None:
    """Messages are split at newlines."""
    assert b"\n" not in plain.encode(value)


class LyingInt(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __index__(self) -> int:
        return 42

    __hash__ = int.__hash__


class LyingFloat(float):
    def __float__(self) -> float:
        return 1.5

    def __add__(self, other: object) -> Any:
        return self


class LyingList(list[int]):
    def __iter__(self) -> Any:
        return iter([9, 9])

    def __len__(self) -> int:
        return 2


class Color(str, enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (LyingInt(7), 7),
        (LyingFloat(-0.0), -0.0),
        (LyingList([1]), [1]),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.OrderedDict(a=1), {"a": 1}),
        (Color.RED, "red"),
    ],
)
def test_a_subclass_is_reduced_without_asking_it(value: Any, expected: Any) -> None:
    """Only base-class methods are used: what is overridden plays no part."""
    assert same(plain.decode(plain.encode(value)), expected)


def test_what_holds_itself_is_refused() -> None:
    """Neither endless nor exponential."""
    cycle: list[Any] = []
    cycle += [cycle, cycle]
    doubling: Any = []
    for _ in range(100):
        doubling = [doubling, doubling]

    for value in (cycle, doubling):
        with pytest.raises(plain.TooBig):
            plain.encode(value)


def test_what_is_not_plain_is_lent_or_refused() -> None:
    """An object never crosses by what it says of itself."""
    thing = object()

    assert plain.decode(plain.encode([thing], lambda value: {"h": 7}), lambda tag, value: (tag, value)) == [("h", 7)]
    with pytest.raises(plain.NotPlain):
        plain.encode([thing])


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[", b"nul", b"1 2", b"\xff", b'{"t":[1],"d":[]}', b"{}", b'{"q":1}', b'{"d":[[1]]}', b'{"d":[[[],1]]}',
        b'{"s":[[1]]}', b'{"i":"x"}', b'{"i":5}', b'{"b":"zz"}', b'{"b":7}', b'{"c":[1,2]}', b'{"c":["1",2.0]}',
        b'{"r":["a"]}', b'{"r":[1,2,0]}', b'{"t":5}', b'{"n":["<f8",[2],"AAAA"]}', b'{"n":["O",[1],""]}',
        b'{"v":["os.system","true"]}', b'{"v":["Fraction",1,0]}', b'{"h":1}', b'{"d":[[1,2],[1,3]]}',
        b"[" * 100_000, b'{"t":[' * 500 + b"1" + b"]}" * 500,
    ],
)  # fmt: skip
def test_bad_data_is_one_kind_of_error(text: bytes) -> None:
    """The judge needs one answer to whatever a candidate sends."""
    with pytest.raises(plain.BadData):
        plain.decode(text)


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(text: bytes) -> None:
    """No other exception gets out."""
    try:
        plain.decode(text)
    except plain.BadData:
        pass


def test_colliding_keys_are_refused_before_they_cost() -> None:
    """A dict of 300,000 keys with one hash would take minutes."""
    modulus = (1 << 61) - 1
    colliding, honest = ([f"[{k * by},0]" for k in range(1, 20_000)] for by in (modulus, 2))

    for pairs in (colliding, colliding + honest, colliding[:100] + honest):
        with pytest.raises(plain.BadData, match="colliding"):
            plain.decode(b'{"d":[' + ",".join(pairs).encode() + b"]}")
    assert len(plain.decode(b'{"d":[' + ",".join(colliding[:60] + honest).encode() + b"]}")) == 60 + len(honest)
