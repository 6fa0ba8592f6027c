"""Whole repositories, with scripted steps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hotbed.errors import NoSpace, SandboxFailed, SandboxGone
from hotbed.grading import CommandReward
from hotbed.grading.verdicts import GradeResult
from hotbed.node.grading.members import Member, is_lost
from hotbed.node.grading.repositories import judge_repository
from tests.unit.node.grading.boxes import Answer, Forks, ran

SPEC = CommandReward(command="python test.py", hidden={"test.py": "import solution"})
REPORTED = CommandReward(
    command="pytest --junitxml=r.xml", hidden={"t.py": ""}, expected=("t.py::test_a", "t.py::test_b"), report="r.xml",
    partial=True,
)  # fmt: skip
JUNIT = (
    b'<testsuite><testcase classname="t" name="test_a"/>'
    b'<testcase classname="t" name="test_b"><skipped/></testcase></testsuite>'
)


class Judged:
    """One candidate's way through its steps."""

    def __init__(self, *answers: Answer, spec: CommandReward = SPEC, candidate: Any = "x = 1", **options: Any) -> None:
        level = options.pop("determinism", "none")
        self.forks = Forks(list(answers), **options)
        member = Member(index=0, candidate=candidate, seed="ab" * 32, determinism=level)
        self.result: GradeResult = asyncio.run(judge_repository(self.forks.host(), spec, member))

    @property
    def programs(self) -> list[bytes]:
        """What was run, in order."""
        return [request.program for request in self.forks.asked]


def test_hidden_tests_come_after_everything_of_the_candidate_is_dead() -> None:
    """Its files, the kill, the removal of planted files, the tests, the run: in this order."""
    judged = Judged()
    placed = [dict((path, text) for path, text, _ in request.files) for request in judged.forks.asked]

    assert judged.result.reward == 1.0
    assert (judged.result.trust, judged.result.seed) == ("beside", "ab" * 32)
    assert placed[0] == {"/work/solution.py": b"x = 1"}
    assert judged.programs[1] == b"kill -9 -1"
    assert placed[3] == {"/work/test.py": b"import solution"}
    assert judged.programs[-1] == b"python test.py"


def test_a_run_that_fails_pays_nothing() -> None:
    """By its exit status."""
    assert Judged(*[ran()] * 4, ran(status="exit", exit_code=1)).result.reward == 0.0


def test_only_expected_tests_that_are_reported_as_passed_count() -> None:
    """A skipped one has not passed, and no report is no pass."""
    judged = Judged(spec=REPORTED, files={"/work/r.xml": JUNIT})

    assert judged.result.reward == 0.5
    assert [check.outcome for check in judged.result.checks] == ["passed", "skipped"]
    assert Judged(spec=REPORTED).result.reward == 0.0


def test_a_patch_that_does_not_apply_is_the_candidates() -> None:
    """The tests are not run."""
    spec = CommandReward(command="true", patch=True)
    judged = Judged(ran(), ran(status="exit", exit_code=1, stderr=b"hunk failed"), spec=spec, candidate="garbage")

    assert (judged.result.reward, judged.result.status) == (0.0, "candidate_error")
    assert "hunk failed" in judged.result.reason
    assert b"true" not in judged.programs[2:]


def test_a_patch_in_another_form_is_the_specs_fault() -> None:
    """It is for the trainer to give the text of one."""
    assert Judged(spec=CommandReward(command="true", patch=True), candidate={"a": "b"}).result.status == "spec_error"


def test_a_step_of_the_specs_own_that_fails_pays_nobody() -> None:
    """Its files cannot be written."""
    spec = CommandReward(command="true", files={"a.py": ""})

    assert Judged(ran(status="exit", exit_code=1), spec=spec).result.status == "spec_error"


def test_trouble_with_files_where_the_candidate_has_been_is_its_own() -> None:
    """A full disk, a folder in place of a file."""
    result = Judged(ran(), ran(), ran(), NoSpace("full")).result

    assert (result.reward, result.status) == (0.0, "candidate_error")


@pytest.mark.parametrize("error", [SandboxGone("ended"), SandboxFailed("no")])
def test_our_trouble_is_no_zero(error: Any) -> None:
    """A sandbox that ended by itself is told apart from one that we could not make."""
    result = Judged(error).result

    assert result.status == "infra_error"
    assert is_lost(result) == isinstance(error, SandboxGone)


def test_what_a_seed_pinned_is_what_it_pinned_in_every_step() -> None:
    """Setup, the kill and the tests are processes of their own."""
    known: dict[str, Any] = {"seed_ack": "verified"}
    judged = Judged(*[ran(pinned=("aslr", "pid"), **known)] * 4, ran(pinned=("aslr",), **known), determinism="rng")

    assert (judged.result.seed_ack, judged.result.pinned) == ("verified", ("aslr",))
