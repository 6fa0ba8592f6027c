"""Frames between a node and its judge, as values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotbed.errors import InvalidSpec, ProtocolError
from hotbed.grading import CheckerReward, UnitTestReward
from hotbed.grading.outputs import RunOutcome
from hotbed.grading.protocol import (
    CandidateCode,
    candidate_of,
    check_frame,
    deadline_s,
    job_frame,
    program_config,
    read_checked,
    read_verdict,
    usage_frame,
)

SPEC = UnitTestReward(tests="assert solve(1)")


def test_a_job_carries_spec_codes_and_files() -> None:
    """Sizes in the header, bytes in the body, in order."""
    header, body = job_frame("j", SPEC, [CandidateCode(code="é"), CandidateCode(code="b", files={"c": "d"})], "5" * 64)
    spec = json.loads(body[: header["spec"]])

    assert header["codes"] == [[2, []], [1, [["c", 1]]]] and body[header["spec"] :] == "ébd".encode()
    assert spec["seed"] == "5" * 64 and spec["tests"] == SPEC.tests and spec["wall_s"] == 31


def test_a_candidate_is_code_or_files() -> None:
    """Of which one is the module under test."""
    assert candidate_of("x", SPEC) == CandidateCode(code="x")
    assert candidate_of({"solution.py": "x", "a.py": "y"}, SPEC) == CandidateCode(code="x", files={"a.py": "y"})
    with pytest.raises(InvalidSpec, match="solution.py"):
        candidate_of({"a.py": "y"}, SPEC)


@pytest.mark.parametrize("count", [0, 251])
def test_a_group_has_its_limits(count: int) -> None:
    """Descriptors of one frame."""
    with pytest.raises(InvalidSpec, match="group"):
        job_frame("j", SPEC, [CandidateCode(code="")] * count, "")


@pytest.mark.parametrize(
    "header",
    [
        {"op": "done"}, {"op": "verdict", "index": 2}, {"op": "verdict", "index": "0"},
        {"op": "verdict", "index": True},
        {"op": "verdict", "index": 0, "status": "ok", "checks": [1]},
        {"op": "verdict", "index": 0, "status": "ok", "checks": [], "seconds": "x"},
    ],
)  # fmt: skip
def test_a_frame_that_is_no_verdict_is_refused(header: dict[str, Any]) -> None:
    """The judge runs the user's tests."""
    with pytest.raises(ProtocolError):
        read_verdict(header, SPEC, 2)


def test_a_verdict_is_read() -> None:
    """With its candidate's number."""
    header = {"op": "verdict", "index": 1, "status": "ok", "checks": [["a", "passed", ""]]}

    assert read_verdict(header, SPEC, 2)[0] == 1 and read_verdict(header, SPEC, 2)[1].reward == 1.0
    assert usage_frame({"op": "usage", "id": "j", "index": 1}, 0.5)["waited_s"] == 0.5
    assert deadline_s(SPEC, 8) > 2 * SPEC.limits.candidate_wall_s


def test_a_lane_is_a_cpu() -> None:
    """Round and round; none unless asked for."""
    assert [program_config(lane, [0, 2]) for lane in range(3)] == [{"cpu": 0}, {"cpu": 2}, {"cpu": 0}]
    assert program_config() == {} == program_config(1)


def test_checkers_are_asked_and_read() -> None:
    """One answer per case, or a reason."""
    spec = CheckerReward(cases=[{"stdin": "i", "stdout": "a"}], checker="def check(i, o, a): return True")
    header, body = check_frame("j", spec, [RunOutcome(status="ok", exit_code=0, stdout=b"out")])

    assert header["items"] == [[1, 3, 1]] and body.endswith(b"iouta")
    assert read_checked({"op": "checked", "answers": [1]}, 1) == [False]
    assert read_checked({"op": "checked", "error": "x"}, 1) == "x"
    with pytest.raises(ProtocolError):
        read_checked({"op": "checked", "answers": []}, 1)
