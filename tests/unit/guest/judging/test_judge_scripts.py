"""Assert scripts and `check(candidate)`."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.grading import CallLimits, UnitTestReward
from tests.support.judging import judge_one

LIMITS = CallLimits(cpu_s=2)
RIGHT = "def solve(x): return x + 1"


def graded(tests: str, code: str = RIGHT, **fields: Any) -> Any:
    return judge_one(UnitTestReward(tests=tests, limits=LIMITS, **{"style": "script", **fields}), code)


def test_every_assert_statement_is_a_check() -> None:
    """In loops and functions as well; each passes if it ran and never failed."""
    loop = "for i in range(3):\n    assert solve(i) == i + 1\n"
    tests = "assert solve(1) == 2\n" + loop + "def t():\n    assert solve(5) == 6\nt()\n"

    assert [(check.name, check.outcome) for check in graded(tests).checks] == [
        ("line 1", "passed"), ("line 3", "passed"), ("line 5", "passed"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "tests",
    [
        "try:\n    assert solve(1) == 3\nexcept AssertionError:\n    pass\n",
        "for i in solve([]):\n    assert i == 1\n",
        "assert solve(1) == 2\nif solve(1) == 9:\n    assert solve(2) == 3\n",
        "def t():\n    assert solve(1) == 2\nsolve(1)\n",
        "assert solve(1) == 2\nraise AssertionError\n",
        "assert all(map(solve, [1, 2])) and solve(1) == 3\n",
    ],
)
def test_a_check_that_failed_or_never_ran_pays_nothing(tests: str) -> None:
    """Swallowed, skipped over, emptied by an answer, not reached."""
    assert graded(tests, "def solve(x): return x + 1 if x else []").reward == 0.0


BARRIER = "try:\n    solve(-1)\n    assert False, 'must refuse'\nexcept ValueError:\n    pass\nassert solve(1) == 2\n"


@pytest.mark.parametrize(
    ("code", "reward", "outcome"),
    [
        ("def solve(x):\n    if x < 0: raise ValueError\n    return x + 1", 1.0, "passed"),
        ("def solve(x): return x + 1", 0.0, "failed"),
        ("def solve(x): raise KeyError", 0.0, "not_run"),
        ("def solve(x): raise ValueError", 0.0, "not_run"),
        ("import sys\ndef solve(x): sys.exit(0)", 0.0, "not_run"),
    ],
)
def test_a_barrier_holds_when_the_script_ends_without_coming_to_it(code: str, reward: float, outcome: str) -> None:
    """`assert False` after a call that must raise: who raises has done right, if the rest holds, too."""
    result = graded(BARRIER, code)

    assert (result.reward, result.checks[0].outcome) == (reward, outcome), result


def test_a_barrier_that_the_script_itself_forgives_has_failed() -> None:
    """`except Exception` swallows the barrier's own error as well."""
    forgiving = BARRIER.replace("ValueError", "Exception")

    assert graded(forgiving).reward == 0.0
    assert graded(forgiving, "def solve(x):\n    if x < 0: raise KeyError\n    return x + 1").reward == 1.0


def test_what_was_never_reached_is_named() -> None:
    """Nothing failed, and still nobody can pass."""
    result = graded("assert solve(1) == 2\nif solve(1) == 9:\n" + "    assert solve(2) == 3\n" * 5)

    assert result.reason == "never reached: line 3, line 4, line 5 and 2 more"


def test_partial_credit_goes_on_after_a_failure() -> None:
    """The fraction of all checks, in the order of the script."""
    tests = "assert solve(1) == 0\nassert solve(1) == 2\nassert solve(2) == 0\nassert solve(2) == 3\n"
    result = graded(tests, partial=True)

    assert (result.reward, result.passed, result.total) == (0.5, 2, 4)
    assert graded(tests).reward == 0.0


def test_check_is_called_with_the_entry_and_support_stays_ours() -> None:
    """A helper of the prompt that the candidate redefines is not the one that tests use."""
    fields = {"style": "check", "entry": "solve", "support": "def helper(x):\n    return x + 1\n"}
    tests = "def check(candidate):\n    assert helper(candidate(1)) == 3\n"

    assert graded(tests, **fields).reward == 1.0
    assert graded(tests, "def solve(x): return 0\ndef helper(x): return 3", **fields).reward == 0.0


def test_methods_of_a_solution_class_can_be_checked() -> None:
    """LeetCode's shape, in `check` style."""
    code = "class Solution:\n    def f(self, x): return x * 2\n"
    result = graded("def check(candidate):\n    assert candidate(2) == 4\n", code, style="check", entry="Solution.f")

    assert result.reward == 1.0


@pytest.mark.parametrize(
    ("tests", "code", "status"),
    [
        ("assert solve(1) == 2", "def other(): pass", "candidate_error"),
        ("from solution import nope\nassert nope()", RIGHT, "candidate_error"),
        ("import no_such_module\nassert solve(1) == 2", RIGHT, "spec_error"),
        ("print('nothing')", RIGHT, "spec_error"),
        ("x = 1\nassert x == 1\nsolve", RIGHT, "ok"),
    ],
)
def test_whose_fault_it_is(tests: str, code: str, status: str) -> None:
    """A missing function is the candidate's, a missing module the spec's."""
    result = graded(tests, code)

    assert result.status == status and (result.reward is None) == (status == "spec_error")


def test_check_of_a_function_that_is_not_there_is_the_candidates_fault() -> None:
    """And says what is missing."""
    result = graded("def check(candidate):\n    assert candidate(1)\n", "x = 1", style="check", entry="solve")

    assert (result.reward, result.status) == (0.0, "candidate_error") and "solve" in result.reason


def test_support_that_fails_is_the_specs_fault() -> None:
    """Before any candidate is asked."""
    assert graded("assert solve(1)", support="1 / 0").status == "spec_error"
