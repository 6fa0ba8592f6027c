"""Programs judged by their output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotbed.grading import OutputCompare, StdioReward
from hotbed.grading.outputs import RunOutcome, runs_of, same_output, stdio_result

SPEC = StdioReward(cases=[{"stdin": "1\n", "stdout": "2\n", "weight": 3.0}, {"stdout": "x", "args": ["it's"]}])
FLOATS = {"float_abs": 1e-6, "float_rel": 1e-6}


@pytest.mark.parametrize(
    ("out", "expected", "compare", "same"),
    [
        (b"1 2\n3\n", "1  2 \n3", {}, True), (b"1\n2\n\n\n", "1\n2", {}, True), (b"1\r\n2\r\n", "1\n2\n", {}, True),
        (b"1 2 3", "1\n2\n3", {}, False), (b"4\n", "4\n3\n", {}, False), (b"4\n3\n", "4\n", {}, False),
        (b"Yes", "yes", {}, False), (b"tick", "tick tick", {}, False), (b"", "", {}, True), (b"\n\n", "", {}, True),
        (b"1\n\n2", "1\n2", {}, False), (b"0.3000000001", "0.3", FLOATS, True), (b"0.3000000001", "0.3", {}, False),
        (b"9007199254740992", "9007199254740993", FLOATS, False), (b"1000000.5", "1000000", FLOATS, False),
        (b"3", "3.0", FLOATS, True), (b"nan", "1.0", FLOATS, False), (b"nan", "nan", FLOATS, True),
        (b"inf", "1e999", FLOATS, False), (b"1_0.0", "10.0", FLOATS, False), (b"0x1p3", "8.0", FLOATS, False),
        ("żółw".encode(), "żółw", {}, True), (b"\xff", "\ufffd", {}, True), (b"a ", "a", {"mode": "exact"}, False),
        (b"a", "a", {"mode": "exact"}, True),
    ],
)  # fmt: skip
def test_the_rules(out: bytes, expected: str, compare: dict[str, Any], same: bool) -> None:
    """Lines and tokens count, blanks do not; ints are exact."""
    assert same_output(out, expected, OutputCompare(**compare)) is same


def test_a_run_holds_its_own_input_and_nothing_of_the_spec() -> None:
    """No expected output, no other input."""
    first, second = runs_of(SPEC, "code")

    assert (first.stdin, first.files) == (b"1\n", (("main.py", b"code"),))
    assert second.command.endswith("main.py 'it'\"'\"'s'") and "x" not in second.command.replace("-X", "").split()


@pytest.mark.parametrize(
    ("outcome", "status", "reward"),
    [
        (RunOutcome(status="ok", exit_code=0, stdout=b"2"), "ok", 1.0),
        (RunOutcome(status="ok", exit_code=0, stdout=b"3"), "failed", 0.25),
        (RunOutcome(status="exit", exit_code=1, stdout=b"2"), "candidate_error", 0.25),
        (RunOutcome(status="signal", exit_code=None), "candidate_error", 0.25),
        (RunOutcome(status="timeout", exit_code=None, stdout=b"2"), "timeout", 0.25),
        (RunOutcome(status="oom", exit_code=None, stdout=b"2"), "oom", 0.25),
        (RunOutcome(status="output", exit_code=None, stdout=b"2"), "output_limit", 0.25),
        (RunOutcome(status="ok", exit_code=0, stdout=b"2", truncated=True), "candidate_error", 0.25),
    ],
)
def test_how_a_run_ended_is_the_candidates_doing(outcome: RunOutcome, status: str, reward: float) -> None:
    """Whatever it is, the reward is a number."""
    result = stdio_result(SPEC, [outcome, RunOutcome(status="ok", exit_code=0, stdout=b"x")])

    assert (result.status, result.reward, result.total) == (status, reward, 2)


def test_a_checker_decides_where_there_is_one() -> None:
    """By the judge's answers."""
    spec = StdioReward(cases=[{"stdout": "2"}] * 3, checker="def check(i, o, a): return True", any_exit=True)
    runs = [RunOutcome(status="exit", exit_code=3)] * 3

    assert stdio_result(spec, runs, [True, False, None]).passed == 1


def test_published_cases() -> None:
    """What the comparison decides in the case file, given the output that the programs write."""
    lines = (Path(__file__).parents[2] / "cases" / "stdio.jsonl").read_text().splitlines()

    assert {json.loads(line)["spec"]["type"] for line in lines} == {"stdio"}
