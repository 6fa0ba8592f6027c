"""Specs that run whole programs."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidSpec
from hotbed.grading import CheckerReward, CommandReward, OutputCompare, StdioReward
from hotbed.grading.programs import made

ONE = [{"stdin": "1", "stdout": "2"}]


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (StdioReward, {}, "cases is empty"),
        (StdioReward, {"cases": [{"input": 1}]}, r"cases\[0\].input"),
        (StdioReward, {"cases": [{"stdin": 1}]}, r"cases\[0\].stdin"),
        (StdioReward, {"cases": [{"weight": -1}]}, "weight"),
        (StdioReward, {"cases": ONE, "path": "/etc/passwd"}, "path"),
        (StdioReward, {"cases": ONE, "path": "a/../../b"}, "path"),
        (StdioReward, {"cases": ONE, "command": " "}, "command"),
        (StdioReward, {"cases": ONE, "checker": "("}, "checker"),
        (StdioReward, {"cases": ONE, "compare": {"mode": "sorted"}}, "compare.mode"),
        (StdioReward, {"cases": ONE, "compare": {"float_abs": -1}}, "float_abs"),
        (StdioReward, {"cases": ONE, "compare": {"mode": "exact", "float_abs": 1}}, "tokens"),
        (StdioReward, {"cases": ONE, "limits": {"cpu_s": -1}}, "limits.cpu_s"),
        (CheckerReward, {"cases": ONE}, "checker is missing"),
        (CommandReward, {"command": ""}, "command is empty"),
        (CommandReward, {"command": "x", "expected": ["a"]}, "report"),
        (CommandReward, {"command": "x", "expected": ["a", "a"], "report": "r"}, "twice"),
        (CommandReward, {"command": "x", "hidden": {"/a": ""}}, "below"),
    ],
)
def test_a_mistake_names_its_field(kind: Any, fields: dict[str, Any], message: str) -> None:
    """Before anything runs."""
    with pytest.raises(InvalidSpec, match=message):
        kind(**fields)


def test_short_forms_become_values() -> None:
    """Objects for cases and the comparison."""
    spec = StdioReward(cases=[{"stdin": "1", "args": ["-x"], "weight": 2.0}], compare={"float_abs": 0.1})  # type: ignore[arg-type]  # what is tested

    assert spec.compare == OutputCompare(float_abs=0.1) and spec.weights == (2.0,)
    assert spec.stdio_cases[0].args == ("-x",)
    assert CommandReward(command="x", expected=["a"], report="r").expected == ("a",)  # type: ignore[arg-type]  # what is tested


def test_a_network_for_a_grade_is_refused_with_the_way_to_have_what_it_would_bring() -> None:
    """Packages come with the template; a verdict that hangs on a server could not be given again."""
    with pytest.raises(InvalidSpec, match=r"command.egress.*bake what its tests need"):
        made(CommandReward, {"command": "x", "egress": {"mode": "open"}}, "command")
