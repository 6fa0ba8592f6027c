"""Sealed specs: what they accept, and what they refuse before anything runs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hotbed.errors import InvalidSpec
from hotbed.grading import CallLimits, Compare, PropertyReward, UnitTestReward


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "tests is empty"),
        ({"tests": []}, "tests is empty"),
        ({"tests": "def ("}, "tests is not valid Python"),
        ({"tests": "x", "template": ""}, "template"),
        ({"tests": "x", "entry": "a b"}, "entry"),
        ({"tests": "x", "style": "nose"}, "style"),
        ({"tests": "x", "style": "cases"}, "list of cases"),
        ({"tests": [{"input": 1, "expected": 1}], "style": "script"}, "source text"),
        ({"tests": "x", "module": "a-b"}, "module"),
        ({"tests": "def check(c): pass", "style": "check"}, "entry is missing"),
        ({"tests": "x", "prelude": "import"}, "prelude"),
        ({"tests": "x", "support": "("}, "support"),
        ({"tests": "x", "files": {"a.py": "("}}, "files"),
        ({"files": {"a.py": "assert x"}}, "files are for"),
        ({"tests": "x", "compare": "close"}, "compare.mode"),
        ({"tests": "x", "limits": {"cpu": 1}}, "limits.cpu"),
        ({"tests": "x", "seed": 0}, "seed of a spec must be text"),
        ({"tests": "x", "seed": b"7"}, "seed of a spec must be text"),
    ],
)
def test_a_unit_test_spec_that_cannot_be_graded_is_refused(fields: dict[str, Any], message: str) -> None:
    """Naming the field."""
    with pytest.raises(InvalidSpec, match=message):
        UnitTestReward(**fields)


def test_the_quickstart_spec() -> None:
    """As printed."""
    spec = UnitTestReward(template="python", tests="assert solve([3,1,2]) == [1,2,3]\n")

    assert (spec.style, spec.partial, spec.entry, spec.weights) == ("script", False, "", ())


def test_cases_have_partial_credit_and_the_published_entry() -> None:
    """As the published spec of that name."""
    spec = UnitTestReward(tests=[{"input": [1], "expected": 1, "weight": 2}, {"input": 2, "expected": 2}])

    assert (spec.style, spec.partial, spec.entry, spec.weights) == ("cases", True, "solve", (2, 1.0))
    assert UnitTestReward(tests=spec.tests, partial=False).partial is False


def draw(rng: random.Random) -> list[int]:
    return [rng.randint(0, 9)]


def square(x: int) -> int:
    return x * x


def test_a_property_spec_takes_functions_and_text() -> None:
    """Functions by their source; the published form as it is."""
    made = PropertyReward(reference=square, generator=draw, entry="solve")
    assert (made.reference_name, made.generator_name) == ("square", "draw")
    assert PropertyReward(reference=made.reference, generator=made.generator) == made
    published = PropertyReward(reference="    return x * x", generator="random.randint(-9, 9)", k=4)
    assert (published.reference_name, published.generator_name) == ("", "")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"k": 0}, "k must"), ({"k": True}, "k must"), ({"entry": ""}, "entry"),
        ({"reference": " "}, "reference is empty"),
        ({"generator": "("}, "generator"), ({"generator": "x = 1"}, "generator defines no function"),
        ({"reference": "return ("}, "reference"), ({"reference": lambda x: x}, "lambda"),
        ({"generator": "def a(): pass\ndef b(): pass"}, "a, b"),
    ],
)  # fmt: skip
def test_a_property_spec_that_cannot_be_graded_is_refused(fields: dict[str, Any], message: str) -> None:
    """Naming the field."""
    with pytest.raises(InvalidSpec, match=message):
        PropertyReward(**{"reference": "return x", "generator": "1", **fields})


def test_short_forms_become_values() -> None:
    """A mode for a comparison, an object for limits."""
    spec = UnitTestReward(tests="assert f()", compare="json", limits={"cpu_s": 2})  # type: ignore[arg-type]  # what is tested

    assert spec.compare == Compare(mode="json") and spec.limits == CallLimits(cpu_s=2)
