"""Cases as users write them and as they travel."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotbed.errors import InvalidSpec
from hotbed.grading.cases import Case, case_of


@pytest.mark.parametrize(
    ("value", "args"),
    [
        ({"input": 3, "expected": 1}, (3,)), ({"input": [1, 2], "expected": 1}, (1, 2)),
        ({"input": [[1, 2]], "expected": 1}, ([1, 2],)), ({"args": (1,), "expected": 1}, (1,)),
        ({"input": {"a": 1}, "expected": 1}, ({"a": 1},)),
    ],
)  # fmt: skip
def test_the_published_form_splats_lists(value: dict[str, Any], args: tuple[Any, ...]) -> None:
    """`args` never does."""
    assert case_of(value, "x").args == args


def test_every_builtin_type_survives_the_wire() -> None:
    """JSON alone loses tuples, int keys and sets."""
    case = Case(args=((1, 2), {3: {4}}), kwargs={"k": b"x"}, expected=10**5000, weight=2.0)

    assert case_of(json.loads(json.dumps(case.to_wire())), "x") == case


def test_what_strict_readers_of_json_refuse_survives() -> None:
    """NaN, the infinities and half a surrogate pair, wherever they are."""
    case = Case(args=(float("-inf"), [{"\ud800": (float("inf"),)}]), expected=[float("nan"), "a\udfffb", int, slice(1)])

    wire = json.loads(json.dumps(case.to_wire(), allow_nan=False, ensure_ascii=False).encode())
    found = case_of(wire, "x")

    assert (
        found.args == case.args and found.expected[1:] == case.expected[1:] and found.expected[0] != found.expected[0]
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"input": 1}, "expected"), ({"expected": 1}, "args"), ({"args": 5, "expected": 1}, "list"), (7, "expected"),
        ({"args": [], "expected": object()}, "expected is not plain"), ({"args": [object()], "expected": 1}, "args"),
        ({"args": [], "expected": 1, "weight": 0}, "weight"), ({"call": [1], "expected": 1}, "cannot be read"),
        ({"call": {"q": 1}, "expected": 1}, "tests"),
    ],
)  # fmt: skip
def test_a_mistake_names_its_case(value: Any, message: str) -> None:
    """And what it lacks."""
    with pytest.raises(InvalidSpec, match=message):
        case_of(value, "tests[0]")
