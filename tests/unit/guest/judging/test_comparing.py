"""Comparison: right answers pass in every mode, wrong ones in none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from hotbed.guest.judging.comparing import same
from tests.unit.guest.judging.test_plain import data

NAN = float("nan")


@given(data, data)
def test_never_equal_where_python_says_unequal(a: Any, b: Any) -> None:
    """Exact and default are at most as generous as ==."""
    for mode in ("exact", "default"):
        assert not same(a, b, mode) or a == b


@given(data)
def test_a_value_equals_its_like(value: Any) -> None:
    """In every mode, NaN aside."""
    text = repr(value)
    if "nan" not in text.lower():
        assert all(same(value, value, mode) for mode in ("exact", "default", "json", "float", "unordered"))


@pytest.mark.parametrize(
    ("mode", "out", "expected", "verdict"),
    [
        ("default", 1, True, True),
        ("default", 1.0, 1, True),
        ("default", (1, 2), [1, 2], False),
        ("default", "1", 1, False),
        ("default", NAN, NAN, False),
        ("default", 2**53 + 1, float(2**53), False),
        ("default", [NAN], [float("nan")], False),
        ("exact", 1, True, False),
        ("exact", 1, 1.0, False),
        ("exact", [1], [True], False),
        ("exact", {1: 2}, {True: 2}, False),
        ("exact", {1.0}, {1}, False),
        ("exact", {(1,)}, {(True,)}, False),
        ("exact", 0.0, -0.0, True),
        ("exact", 10**4000, 10**4000, True),
        ("exact", frozenset([1]), {1}, False),
        ("json", ((1,), (2,)), [[1], [2]], True),
        ("json", {1: (2,)}, {"1": [2]}, True),
        ("json", {True: 1, None: 2}, {"true": 1, "null": 2}, True),
        ("json", {1: 2, "1": 3}, {"1": 3}, False),
        ("json", "a", ["a"], False),
        ("float", 0.1 + 0.2, 0.3, True),
        ("float", 5, 5.0, True),
        ("float", 5.0000001, 5, False),
        ("float", 10**400, 1.5, False),
        ("float", NAN, 1.5, False),
        ("float", NAN, NAN, False),
        ("float", float("inf"), float("inf"), True),
        ("float", 1.5, float("inf"), False),
        ("float", True, 1.0, False),
        ("float", "1.0", 1.0, False),
        ("float", [1.0000001, {"a": 2.0000001}], [1.0, {"a": 2.0}], True),
        ("float", [1.0], [1.0, 2.0], False),
        ("unordered", [3, 1, 2], (1, 2, 3), True),
        ("unordered", [1, 1, 2], [1, 2, 2], False),
        ("unordered", [[1, 2], [3]], [[3], [1, 2]], True),
        ("unordered", [[1, 2]], [[2, 1]], False),
        ("unordered", [{"a": [1]}], [{"a": [1]}], True),
        ("unordered", [NAN], [NAN], False),
        ("unordered", 5, 5, True),
    ],
)
def test_the_rules_of_each_mode(mode: str, out: Any, expected: Any, verdict: bool) -> None:
    """Ints are exact, text is no number, multiplicity counts, NaN is no wildcard."""
    assert same(out, expected, mode, {"abs": 1e-9, "rel": 1e-6}) is verdict


@pytest.mark.parametrize("mode", ["default", "exact", "float", "unordered"])
def test_nan_equals_nan_only_when_asked(mode: str) -> None:
    """Python's own lists think otherwise, by identity."""
    assert same([NAN], [float("nan")], mode, {"nan_equal": True})
    assert not same([NAN], [1.0], mode, {"nan_equal": True})


def test_deep_values_are_unequal_rather_than_an_error() -> None:
    """A comparison never raises."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    assert same(deep, [deep], "json") is False


class Costly(int):
    """A number that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Costly.compared += 1
        return int(self) == other

    def __hash__(self) -> int:
        return 7


def test_answers_made_to_collide_cost_no_more_than_others() -> None:
    """They are looked up one by one among what was expected; the first that is not there ends it."""
    out = [Costly(number) for number in range(2000)]

    assert not same(out, list(range(2000)), "unordered", {})
    assert Costly.compared < 2000
    assert same([3, 1, 1.0, 2], [1, 1, 2, 3], "unordered", {})
    assert not same([1, 1, 2], [1, 2, 2], "unordered", {})
