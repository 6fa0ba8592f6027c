"""Specs as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotbed.errors import InvalidSpec
from hotbed.grading import (
    CheckerReward,
    CommandReward,
    PropertyReward,
    StdioReward,
    UnitTestReward,
    from_wire,
    to_wire,
)

SPECS = [
    UnitTestReward(tests="assert solve(1)", compare="json", limits={"cpu_s": 2}),  # type: ignore[arg-type]  # short forms
    UnitTestReward(tests=[{"args": [(1, 2)], "expected": {3: {4}}, "weight": 2.0}], partial=False),
    UnitTestReward(files={"test_a.py": "import unittest\nclass T(unittest.TestCase): pass"}, module="m"),
    PropertyReward(reference="    return x", generator="random.random()", k=3),
    StdioReward(cases=[{"stdin": "1", "stdout": "2", "args": ["a"]}], compare={"float_rel": 0.1}),  # type: ignore[arg-type]  # short forms
    CheckerReward(cases=[{"stdin": "1"}], checker="def check(i, o, a): return True"),
    CommandReward(command="pytest", expected=("a", "b"), report="r.xml", hidden={"t.py": "x"}),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.type)
def test_it_comes_back_equal(spec: Any) -> None:
    """Through text."""
    assert from_wire(json.loads(json.dumps(to_wire(spec)))) == spec


def test_a_file_a_person_writes() -> None:
    """Type and tests are enough."""
    spec = from_wire({"tests": [{"input": [1, 2], "expected": {"a": 1}}]})

    assert isinstance(spec, UnitTestReward) and spec.cases[0].expected == {"a": 1}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "JSON object"), ({"type": "essay"}, "type 'essay'"), ({"test": "x"}, "unit_tests.test is not known"),
        ({"type": "property", "generator": "1"}, "reference is missing"), ({"tests": 5}, "unit_tests"),
        ({"type": "stdio", "cases": 5}, "stdio"), ({"tests": "x", "limits": 5}, "unit_tests"),
    ],
)  # fmt: skip
def test_a_mistake_names_its_field(data: Any, message: str) -> None:
    """One kind of error."""
    with pytest.raises(InvalidSpec, match=message):
        from_wire(data)


def test_only_specs_travel() -> None:
    """Anything else is a mistake of the caller."""
    with pytest.raises(InvalidSpec, match="str"):
        to_wire("assert 1")  # type: ignore[arg-type]  # what is tested
