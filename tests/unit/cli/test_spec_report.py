"""What a spec is worth, from verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotbed.cli.mutants import Mutant
from hotbed.cli.spec_report import Findings, report_of
from hotbed.grading import Check, GradeResult
from hotbed.grading.verdicts import Outcome, infra_failure, spec_failure


def result(reward: float, *outcomes: Outcome, **more: Any) -> GradeResult:
    """A verdict with its checks."""
    checks = tuple(Check(name=f"c{number}", outcome=outcome) for number, outcome in enumerate(outcomes))
    return GradeResult(reward=reward, checks=checks, status="ok" if reward == 1.0 else "failed", **more)


PAID = result(1.0, "passed", "passed")
HALF = result(0.5, "passed", "failed")
NOTHING = result(0.0, "failed", "failed")
MUTANT = Mutant(line=3, what="changed", code="x")
SOUND = Findings(gold=[PAID] * 3, empty=NOTHING, mutants=[(MUTANT, HALF)], first=[PAID, HALF], again=[PAID, HALF])


def test_a_sound_spec_has_no_problem() -> None:
    """Gold paid every time, nothing for nothing, mutants in between, the same again."""
    report = report_of(SOUND)

    assert report.is_sound and report.as_data()["sound"] is True
    assert (report.gold_full, report.gold_runs, report.empty_reward) == (3, 3, 0.0)
    assert (report.mutants_caught, report.mutants, report.mutants_mean_reward) == (1, 1, 0.5)
    assert report.never_failed == ("c0",)
    assert report.repeatable


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"gold": [PAID, HALF, PAID]}, "1.0 in 2 of 3"),
        ({"gold": [spec_failure("no module x")] * 3}, "no module x"),
        ({"empty": HALF}, "empty candidate scored 0.5"),
        ({"mutants": [(MUTANT, PAID)]}, "none of 1 mutants"),
        ({"again": [PAID, NOTHING]}, "same seed"),
        ({"gold": [result(1.0, "passed", "skipped")] * 3}, "so nobody can pass: c1"),
    ],
)
def test_each_problem_is_named(change: dict[str, Any], problem: str) -> None:
    """And makes the answer no."""
    report = report_of(replace(SOUND, **change))

    assert not report.is_sound
    assert any(problem in each for each in report.problems), report.problems


def test_what_is_not_a_problem_is_told() -> None:
    """Flaky checks, checks that are not sealed, mutants that live."""
    beside = replace(PAID, trust="beside", trust_reason="compares live objects")
    gold = [beside, replace(beside, checks=HALF.checks), beside]
    survivor = replace(MUTANT, line=9)
    report = report_of(
        replace(SOUND, gold=gold, mutants=[(MUTANT, HALF), (survivor, PAID), (MUTANT, infra_failure("x"))])
    )

    assert report.flaky == ("c1",)
    assert report.unsealed == ("compares live objects",)
    assert report.survivors == ("line 9: changed",)
    assert report.mutants == 2


def test_without_mutants_nothing_is_said_of_them() -> None:
    """A program in another language has none."""
    report = report_of(replace(SOUND, mutants=[]))

    assert report.is_sound
    assert (report.mutants_mean_reward, report.never_failed) == (None, ())
