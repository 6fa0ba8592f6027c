"""Verdicts held against each other, and what is asked for the second one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hotbed.errors import ProtocolError
from hotbed.node.regrades import grade_again, verdict_differences
from hotbed.wire.grading import GradeDone, GradeLine, GradeRequest

ROW: dict[str, Any] = {
    "reward": 0.5,
    "status": "failed",
    "determinism": "rng",
    "details": {"judge_seed": "cd" * 32, "checks": [["a", "passed", ""], ["b", "failed", "at 0x7f"]]},
}
RESULT = {"reward": 0.5, "status": "failed", "checks": [["a", "passed", ""], ["b", "failed", "at 0x55"]]}


class FakeGraders:
    """Remembers what it was asked and gives one line."""

    def __init__(self, *lines: Any) -> None:
        self.lines = lines
        self.asked: list[tuple[GradeRequest, str]] = []

    async def grade(self, request: GradeRequest, lease: Any, *, judge_seed: str) -> AsyncIterator[Any]:
        """The lines."""
        self.asked.append((request, judge_seed))
        for line in self.lines:
            yield line


def again(graders: FakeGraders) -> GradeLine:
    """Grade the row again."""
    request = json.dumps({"spec": {"type": "unit_tests"}, "code": "x", "seed": "ab" * 32}).encode()
    return asyncio.run(grade_again(graders, ROW, request, None))  # type: ignore[arg-type]  # a fake


def test_the_judge_draws_what_it_drew() -> None:
    """And the candidate's own seed is the one it had."""
    line = GradeLine(index=0, result=RESULT, id="grade_2")
    graders = FakeGraders(None, line, GradeDone(group_id="g", graded=1, invalid=0))

    assert again(graders) is line
    [(request, judge_seed)] = graders.asked
    assert (request.codes, request.seeds, request.determinism) == (("x",), ("ab" * 32,), "rng")
    assert judge_seed == "cd" * 32


def test_a_group_without_a_verdict_is_none() -> None:
    """It is not called identical."""
    with pytest.raises(ProtocolError):
        again(FakeGraders(GradeDone(group_id="g", graded=0, invalid=0)))


def test_messages_are_not_compared() -> None:
    """They quote addresses."""
    assert list(verdict_differences(ROW, RESULT)) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"reward": 1.0}, ["reward"]),
        ({"status": "timeout"}, ["status"]),
        ({"checks": [["a", "passed", ""]]}, ["checks"]),
        ({"checks": [["a", "failed", ""], ["b", "passed", ""]]}, ["check a"]),
    ],
)
def test_every_other_difference_is_named(change: dict[str, Any], what: list[str]) -> None:
    """Of the checks the first."""
    found = list(verdict_differences(ROW, {**RESULT, **change}))

    assert [item.what for item in found] == what
    assert found[0].source == ("timing" if "status" in change else "unknown")
