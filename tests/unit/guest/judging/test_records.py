"""Named tuples across the wall."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest

from hotbed.guest.judging import comparing, plain, records

Point = namedtuple("Point", "x y")


def crossed(value: Any) -> Any:
    return plain.decode(plain.encode(value))


def test_fields_keep_their_names() -> None:
    """And it is still the tuple that it was, deep inside as well."""
    found = crossed([Point(1, Point(2, [3]))])[0]

    assert (
        found == (1, (2, [3])) and (found.x, found.y.y) == (1, [3]) and repr(Point(1, 2)) == repr(crossed(Point(1, 2)))
    )
    assert found._asdict()["x"] == 1 and found._replace(x=5) == (5, (2, [3]))
    with pytest.raises(ValueError, match="unexpected"):
        found._replace(z=1)


@pytest.mark.parametrize("mode", ["default", "exact", "json", "float", "unordered"])
def test_every_comparison_sees_a_tuple(mode: str) -> None:
    """What a case expects is a tuple or, in JSON's eyes, a list."""
    expected: Any = [1, 2] if mode == "json" else (1, 2)

    assert comparing.same(crossed(Point(1, 2)), expected, mode)
    assert not comparing.same(crossed(Point(1, 3)), expected, mode)


@pytest.mark.parametrize(
    "parts",
    [
        ["P", ["x"], [1, 2]], ["P", ["__class__"], [1]], ["P", ["_x"], [1]], ["P", ["a b"], [1]], [1, ["x"], [1]],
        ["P", "x", [1]], ["P", ["x"], "1"], ["P"], ["P", [1], [1]],
    ],
)  # fmt: skip
def test_what_is_no_named_tuple_is_refused(parts: list[Any]) -> None:
    """Names become attributes: only public ones do."""
    with pytest.raises(plain.BadData):
        plain.unpack({"N": parts})


def test_only_so_many_classes_are_kept() -> None:
    """A sender that makes up names costs no memory for good."""
    for number in range(500):
        records.unpack(f"P{number}", ["x"], [number])

    assert len(records._cache) <= 200


def test_a_class_that_lies_is_an_ordinary_tuple() -> None:
    """Its own methods are not asked."""

    class Liar(tuple[int, ...]):
        _fields = ("x", "y", "z")

        def __iter__(self) -> Any:
            return iter((9, 9))

    assert crossed(Liar((1, 2))) == (1, 2) and type(crossed(Liar((1, 2)))) is tuple
