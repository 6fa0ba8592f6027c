"""Anything that crosses a lane is a line of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotbed.pools.plainly import text_of, value_of


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({"a": [1, 2.5, None, True, "é"]}, {"a": [1, 2.5, None, True, "é"]}),
        ((1, 2), [1, 2]),
        ({3: "x"}, {"3": "x"}),
        (b"\x00\xff", {"$": ["bytes", "AP8="]}),
        (bytearray(b"a"), {"$": ["bytes", "YQ=="]}),
        (float("nan"), {"$": ["float", "nan"]}),
        ({"$": 1}, {"$": ["dict", {"$": 1}]}),
    ],
)
def test_what_json_cannot_hold_has_a_tag(value: Any, plain: Any) -> None:
    """And is never mistaken for a value of the user's."""
    assert json.loads(text_of(value)) == plain
    assert "\n" not in text_of({"text": "a\nb"})


def test_arrays_keep_their_bytes() -> None:
    """Type, shape and content; a number of numpy's is a number."""
    numpy = pytest.importorskip("numpy")

    assert json.loads(text_of(numpy.array([[1, 2]], dtype="<i2"))) == {"$": ["array", "<i2", [1, 2], "AQACAA=="]}
    assert json.loads(text_of(numpy.float32(0.5))) == 0.5


@pytest.mark.parametrize("value", [{"a": [1, b"x", {"$": [float("inf")]}]}, [], None, -(1 << 70), "\ud800\0\n"])
def test_a_value_comes_back(value: Any) -> None:
    """So that an action can be taken again."""
    assert value_of(json.loads(text_of(value))) == value


def test_an_array_comes_back() -> None:
    """Equal in type as well."""
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(6, dtype="f4").reshape(2, 3)
    again = value_of(json.loads(text_of(array)))

    assert (again.dtype, again.tolist()) == (array.dtype, array.tolist())


@pytest.mark.parametrize("tag", [{"$": []}, {"$": ["what"]}, {"$": ["bytes"]}, {"$": ["bytes", 3]}, {"$": 7}])
def test_a_tag_that_is_none_is_no_value(tag: Any) -> None:
    """It came over the wire."""
    with pytest.raises((ValueError, TypeError, LookupError)):
        value_of(tag)
