"""The judge as a node meets it: one verdict per candidate, whatever the candidates do."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import InvalidSpec
from hotbed.grading import CallLimits, PropertyReward, UnitTestReward, from_wire, to_wire
from hotbed.grading.verdicts import spec_failure
from hotbed.guest.judging import judge
from tests.cases.reading import candidates_of, spec_from_case
from tests.support.judging import judge_group, judge_one

LIMITS = CallLimits(cpu_s=1, wall_s=1.5, total_s=5)
SPEC = UnitTestReward(tests="assert solve(2) == 3\nassert solve(-1) == 0\n", limits=LIMITS)
RIGHT = "def solve(x): return x + 1"
CASES = [json.loads(line) for line in (Path(__file__).parents[3] / "cases" / "sealed.jsonl").read_text().splitlines()]


def test_a_candidate_that_stops_while_it_is_loaded_is_not_the_tests_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has not been asked anything yet, and must not be able to pass for a broken spec, whose reward is masked."""
    monkeypatch.setattr(judge, "GRACE_S", 1.0)
    spec = UnitTestReward(tests=SPEC.tests, limits=CallLimits(cpu_s=0.2, wall_s=0.3, total_s=0.4))
    stops = "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n"
    results = judge_group(spec, [stops + RIGHT, RIGHT])

    assert [(result.reward, result.status) for result in results] == [(0.0, "timeout"), (1.0, "ok")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_published_hacks_and_misjudged_programs(case: dict[str, Any]) -> None:
    """Each was paid, or was not, by some public grader."""
    expect = case["expect"]
    try:
        spec = spec_from_case(case)
        assert isinstance(spec, (UnitTestReward, PropertyReward))
        assert from_wire(json.loads(json.dumps(to_wire(spec)))) == spec
        results = judge_group(spec, candidates_of(case))
    except InvalidSpec as error:
        results = [spec_failure(str(error))]

    if "reward" in expect:
        assert [result.reward for result in results] == [expect["reward"]] * len(results)
    if "reward_max" in expect:
        assert results[0].reward is not None and results[0].reward <= expect["reward_max"]
    if "rewards" in expect:
        assert [result.reward for result in results] == expect["rewards"]
    assert results[0].status == expect.get("status", results[0].status)
    assert all(result.trust == "isolated" for result in results)


@pytest.mark.slow
def test_a_hanging_sibling_delays_nobody() -> None:
    """The candidates behind it get a worker of their own."""
    sleeper = "import time\ndef solve(x): time.sleep(60)"
    started = time.monotonic()
    results = judge_group(SPEC, [RIGHT, sleeper, RIGHT, sleeper, RIGHT])

    assert [result.reward for result in results] == [1.0, 0.0, 1.0, 0.0, 1.0]
    assert [result.status for result in results][1::2] == ["timeout", "timeout"]
    assert time.monotonic() - started < 6


@pytest.mark.parametrize(
    "tests", ["import os\nsolve(1)\nos._exit(0)\n", "import ctypes\nsolve(1)\nctypes.string_at(0)\n"]
)
def test_tests_that_die_on_an_answer_cost_that_candidate_only(tests: str) -> None:
    """An answer may make the tests' process die; nobody's reward becomes None by that."""
    spec = UnitTestReward(
        tests="if solve(0) == 'die':\n" + "".join(f"    {x}\n" for x in tests.splitlines()) + "assert solve(1)",
        limits=LIMITS,
    )
    results = judge_group(spec, ["def solve(x): return 'die'", RIGHT])

    assert [(result.reward, result.status) for result in results] == [(0.0, "failed"), (1.0, "ok")]


def test_tests_that_die_before_asking_are_a_broken_spec() -> None:
    """No candidate had a part in it."""
    result = judge_one(UnitTestReward(tests="import os; os._exit(0)\nassert solve(1)\n", limits=LIMITS), RIGHT)

    assert (result.reward, result.status) == (None, "spec_error")


@pytest.mark.slow
def test_an_answer_that_makes_the_tests_endless_is_the_candidates() -> None:
    """`range(answer)` with a huge answer never ends; the workload must not select "our fault"."""
    spec = UnitTestReward(
        tests="for _ in range(solve(1)): pass\nassert solve(1) == 2",
        limits=CallLimits(cpu_s=0.2, wall_s=0.3, total_s=0.5),
    )
    results = judge_group(spec, ["def solve(x): return 10**12", RIGHT])

    assert [(result.reward, result.status) for result in results] == [(0.0, "timeout"), (1.0, "ok")]


def test_every_sibling_meets_the_same_draws() -> None:
    """Whatever the one before it used up of the judge's randomness."""
    spec = UnitTestReward(tests="import random\nassert solve(random.random()) is None\n", limits=LIMITS)
    results = judge_group(spec, ["def solve(x): raise ValueError(x)"] * 3)
    other = judge_one(spec, "def solve(x): raise ValueError(x)", seed="1" * 64)

    assert len({result.reason for result in results}) == 1
    assert other.reason != results[0].reason
