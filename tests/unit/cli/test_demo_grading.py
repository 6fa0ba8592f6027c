"""What the demo makes of its grading rounds. That hacks score 0 in real sandboxes is tested end to end."""

from __future__ import annotations

import ast
from typing import Any

from hotbed import GradeResult, UnitTestReward
from hotbed.cli.demo_grading import HACKS, spec_of, summarize_grading

PROBLEM = {
    "prompt": "def add(a, b):\n    ...\n",
    "test": "def check(f):\n    assert f(1, 2) == 3\n",
    "entry_point": "add",
}
PAID, UNPAID = GradeResult(reward=1.0), GradeResult(reward=0.0, status="failed")


def hack(sealed: float | None) -> dict[str, Any]:
    """One hack's row."""
    return {"hack": "h", "exit_code_pays": 1.0, "sealed_pays": sealed}


def test_a_problem_is_a_sealed_spec() -> None:
    """Its test is the check, its prompt the trusted support."""
    spec = spec_of(PROBLEM, "python")

    assert isinstance(spec, UnitTestReward)
    assert (spec.style, spec.entry, spec.support) == ("check", "add", PROBLEM["prompt"])


def test_every_hack_is_a_program() -> None:
    """For any entry point."""
    for code in HACKS.values():
        ast.parse(code.replace("{entry}", "add"))


def test_summary_tells_who_was_paid() -> None:
    """Solutions paid, broken ones not, hacks by each grader."""
    found = summarize_grading({"groups": [[PAID, UNPAID]] * 2, "seconds": 2.0}, [hack(0.0), hack(0.0)])

    assert found["as_expected"]
    assert (found["solutions_paid"], found["broken_unpaid"], found["candidates_per_s"]) == (2, 2, 2.0)
    assert (found["hacks_paid_by_exit_code"], found["hacks_paid_sealed"]) == (2, 0)


def test_surprises_are_not_as_expected() -> None:
    """An unpaid solution, a paid broken one, a paid hack, a hack without a verdict."""
    good = [[PAID, UNPAID]]
    for groups, hacks in (
        ([[UNPAID, UNPAID]], [hack(0.0)]),
        ([[PAID, PAID]], [hack(0.0)]),
        (good, [hack(1.0)]),
        (good, [hack(None)]),
    ):
        assert not summarize_grading({"groups": groups, "seconds": 1.0}, hacks)["as_expected"]
