"""What is said of a candidate besides its verdict."""

from __future__ import annotations

import pytest

from hotbed.errors import BadPath
from hotbed.grading.verdicts import GradeResult, infra_failure
from hotbed.node.grading.members import about_box, candidate_failure, check_names, is_lost, lost_sandbox
from hotbed.runtime.base import BoxRequest, ProgramEnd
from tests.unit.node.grading.boxes import FakeBox


def test_a_result_tells_of_its_sandbox() -> None:
    """Isolation, output's end, times; what was known before is kept."""
    end = ProgramEnd(status="ok", exit_code=0, signal=None, stdout=b"x" * 5000, stderr=b"\xff")
    result = GradeResult(reward=1.0, sandbox={"a": 1}, timings={"judge_s": 0.5})
    told = about_box(result, FakeBox(BoxRequest(), [], ()), end=end, total_ms=2.0)  # type: ignore[arg-type]  # a fake

    assert told.sandbox["isolation"] == "fake"
    assert (told.sandbox["a"], told.sandbox["fork_time_ms"]) == (1, 1.25)
    assert (len(told.sandbox["stdout"]), told.sandbox["stderr"]) == (4096, "\ufffd")
    assert told.timings == {"judge_s": 0.5, "total_ms": 2.0}


def test_a_fork_time_that_is_not_known_is_not_told() -> None:
    """A zero would be a lie."""
    box = FakeBox(BoxRequest(), [], ())
    box.fork_time_ms = 0.0

    assert "fork_time_ms" not in about_box(GradeResult(reward=1.0), box).sandbox  # type: ignore[arg-type]  # a fake


def test_a_lost_sandbox_is_ours_and_told_apart() -> None:
    """From other failures of ours, which no number of repetitions turns into the candidate's."""
    assert lost_sandbox("gone").reward is None
    assert is_lost(lost_sandbox("gone"))
    assert not is_lost(infra_failure("no"))
    assert not is_lost(candidate_failure("its files"))
    assert candidate_failure("its files").reward == 0.0


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a\0b", ".."])
def test_names_lead_nowhere_else(name: str) -> None:
    """A model may have chosen them."""
    with pytest.raises(BadPath):
        check_names({"main.py": "", name: ""})
    check_names({"main.py": "", "a/..b/c": ""})
    check_names("/etc/passwd")
