"""From what was seen to a reward."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hotbed.grading.verdicts import (
    GradeResult,
    infra_failure,
    is_invalid,
    result_of,
    reward_of,
    settle,
    spec_failure,
)

VERDICT = {
    "status": "failed",
    "reason": "a: no",
    "checks": [["a", "failed", "no"], ["b", "passed", ""]],
    "unsealed": [],
    "tampered": "",
    "calls": 3,
    "seconds": 0.5,
}


@pytest.mark.parametrize(
    ("outcomes", "partial", "weights", "reward"),
    [
        ([], True, (), 0.0), (["passed"], False, (), 1.0), (["passed", "skipped"], False, (), 0.0),
        (["passed", "not_run"], True, (), 0.5), (["passed", "failed"], True, (3.0, 1.0), 0.75),
        (["passed", "failed"], True, (3.0,), 0.5), (["passed"] * 3, True, (0.1, 0.2, 0.3), 1.0),
    ],
)  # fmt: skip
def test_reward(outcomes: Any, partial: bool, weights: Any, reward: float) -> None:
    """The share of the weight, or all or nothing; nothing checked is nothing earned."""
    assert reward_of(outcomes, partial=partial, weights=weights) == reward


def test_a_result_of_a_verdict() -> None:
    """And its wire form."""
    result = result_of(VERDICT, partial=True)

    assert (result.reward, result.passed, result.total, result.calls, result.trust) == (0.5, 1, 2, 3, "isolated")
    assert result_of(VERDICT, partial=False).reward == 0.0
    result = replace(result, pinned=("getrandom", "pid"))
    assert GradeResult.from_wire({**json.loads(json.dumps(result.to_wire())), "new_field": 1}) == result


@pytest.mark.parametrize("status", ["ok", "failed", "candidate_error", "timeout"])
def test_whatever_a_candidate_does_its_reward_is_a_number(status: str) -> None:
    """And all-or-nothing pays only for status ok."""
    result = result_of({**VERDICT, "status": status, "checks": [["a", "passed", ""]]}, partial=False)

    assert result.reward == (1.0 if status == "ok" else 0.0) and not is_invalid(result)


def test_invalid_is_none_and_only_that_is() -> None:
    """Ours or the spec's fault."""
    for result in (infra_failure("x"), spec_failure("x"), result_of({**VERDICT, "status": "spec_error"}, partial=True),
                   result_of({"status": "reward"}, partial=True)):  # fmt: skip
        assert result.reward is None and is_invalid(result)


def test_what_is_not_sealed_says_so() -> None:
    """With the reasons; tampering is reported beside."""
    result = result_of({**VERDICT, "unsealed": ["a", "b"], "tampered": "forged"}, partial=True)

    assert (result.trust, result.trust_reason, result.suspected_tamper) == ("beside", "a; b", True)


@pytest.mark.parametrize(
    ("status", "ended", "signal", "settled"),
    [
        ("candidate_error", "oom", None, "oom"), ("candidate_error", "signal", 27, "timeout"),
        ("candidate_error", "timeout", None, "timeout"), ("failed", "oom", None, "oom"), ("ok", "oom", None, "ok"),
        ("candidate_error", "exit", None, "candidate_error"), ("spec_error", "oom", None, "spec_error"),
    ],
)  # fmt: skip
def test_how_the_process_ended_names_the_failure(status: str, ended: str, signal: int | None, settled: str) -> None:
    """And never changes a reward."""
    before = result_of({**VERDICT, "status": status}, partial=True)
    after = settle(before, ended, signal=signal)

    assert (after.status, after.reward) == (settled, before.reward)
