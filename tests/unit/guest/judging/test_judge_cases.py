"""Cases and properties."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.grading import CallLimits, PropertyReward, UnitTestReward
from tests.support.judging import judge_group, judge_one

LIMITS = CallLimits(cpu_s=1)
PAIRS = [{"args": [n], "expected": n + 1} for n in range(4)]


def graded(code: str, tests: Any = PAIRS, **fields: Any) -> Any:
    return judge_one(UnitTestReward(tests=tests, limits=LIMITS, **fields), code)


def test_each_case_has_a_process_of_its_own() -> None:
    """State of one call is not there in the next, unless the spec says so."""
    code = "n = [0]\ndef solve(x):\n    n[0] += 1\n    return n[0]\n"
    ones = [{"args": [0], "expected": 1}] * 3

    assert graded(code, ones).reward == 1.0
    assert graded(code, ones, fresh=False).reward == pytest.approx(1 / 3)


def test_a_crash_costs_its_own_case_only() -> None:
    """An honest program that dies on one input keeps the others."""
    result = graded("import os\ndef solve(x):\n    if x == 2: os._exit(1)\n    return x + 1\n")

    assert (result.reward, result.status) == (0.75, "candidate_error")


@pytest.mark.slow
def test_cpu_limits_end_a_case_and_are_timeouts() -> None:
    """By CPU time, in the candidate's own process; three of them end the candidate."""
    limits = CallLimits(cpu_s=0.2, wall_s=10)
    code = "def solve(x):\n    while x % 2: pass\n    return x + 1\n"
    result = judge_one(UnitTestReward(tests=PAIRS, limits=limits), code)

    assert (result.reward, result.status) == (0.5, "timeout")


def test_weights_and_kwargs_and_mutated_arguments() -> None:
    """What a case can say."""
    tests = [{"args": [[2, 1]], "kwargs": {"k": 1}, "expected": [1, 2], "weight": 3.0}, {"args": [[1]], "expected": 0}]
    result = graded("def solve(x, k=0):\n    x.sort()\n", tests, compare={"target": "arg0"})

    assert result.reward == 0.75


def test_a_checker_decides_on_plain_data() -> None:
    """It must say True; raising is no."""
    compare = {"mode": "checker", "checker": "def check(args, out, expected):\n    return out[0] * out[1] == args[0]\n"}
    tests = [{"args": [6], "expected": None}]

    assert graded("def solve(x): return (2, 3)", tests, compare=compare).reward == 1.0
    assert graded("def solve(x): return 5", tests, compare=compare).reward == 0.0


PROPERTY: dict[str, Any] = {
    "generator": "def generate(rng):\n    return [[rng.randint(0, 9) for _ in range(4)]]\n",
    "reference": "def solve(xs):\n    return sum(xs)\n",
}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        (PROPERTY, "def solve(xs): return sum(xs)"),
        ({"generator": "random.randint(-9, 9)", "reference": "    return x * x"}, "def solve(x): return x * x"),
        ({"generator": "[random.random()]", "reference": "return x[0]"}, "def solve(x): return x[0]"),
        ({"generator": "def generator():\n    return (1, 2)", "reference": "def f(a, b):\n    return a - b"},
         "def solve(a, b): return a - b"),
    ],
)  # fmt: skip
def test_agreeing_with_the_reference_pays(fields: dict[str, Any], code: str) -> None:
    """Functions, and the published one-argument form."""
    results = judge_group(PropertyReward(**fields, limits=LIMITS), [code, "def solve(*a): return None"])

    assert [result.reward for result in results] == [1.0, 0.0]


@pytest.mark.parametrize("reference", ["def solve(xs):\n    1 / 0\n", "def solve(xs):\n    return object()\n"])
def test_a_broken_reference_is_the_specs_fault(reference: str) -> None:
    """Zeros for the policy would teach it something."""
    result = judge_one(PropertyReward(**{**PROPERTY, "reference": reference}, limits=LIMITS), "def solve(x): pass")

    assert (result.reward, result.status) == (None, "spec_error")


def test_the_draws_depend_on_the_seed_alone() -> None:
    """Common random numbers for siblings; other numbers for another group."""
    code = "def solve(xs): raise ValueError(xs)"
    spec = PropertyReward(**PROPERTY, k=1, limits=LIMITS)
    first, second = judge_group(spec, [code, code])
    other = judge_one(spec, code, seed="2" * 64)

    assert first.reason == second.reason != other.reason
