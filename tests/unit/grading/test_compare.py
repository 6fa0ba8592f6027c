"""Comparisons as values."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidSpec
from hotbed.grading.compare import Compare, compare_of


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("fuzzy", "compare.mode"), ({"mode": "float", "abs": -1}, "compare.abs"), ({"rel": 0.1}, "mode 'float'"),
        ({"mode": "float", "rel": float("nan")}, "compare.rel"), ({"mode": "checker"}, "compare.checker"),
        ({"checker": "x"}, "compare.checker"), ({"target": "kwarg"}, "compare.target"), ({"eps": 1}, "compare.eps"),
    ],
)  # fmt: skip
def test_a_mistake_names_its_field(value: Any, field: str) -> None:
    """At construction."""
    with pytest.raises(InvalidSpec, match=field):
        compare_of(value)


def test_short_forms_and_wire() -> None:
    """A mode is enough; the wire form leaves defaults out."""
    made = compare_of({"mode": "float", "abs": 0.1})

    assert compare_of("json") == Compare(mode="json") and compare_of(made) is made
    assert made.to_wire() == {"mode": "float", "abs": 0.1} and compare_of(made.to_wire()) == made
