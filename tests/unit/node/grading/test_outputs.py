"""Programs judged by what they print, with scripted runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hotbed.errors import Error, FileMissing, NoSpace, SandboxFailed, SandboxGone
from hotbed.grading import CallLimits, StdioReward
from hotbed.grading.verdicts import GradeResult
from hotbed.node.grading.members import Member, is_lost
from hotbed.node.grading.outputs import as_run, code_of, judge_outputs
from tests.unit.node.grading.boxes import Answer, Forks, ran

SPEC = StdioReward(cases=[{"stdin": "1", "stdout": "1"}, {"stdin": "2", "stdout": "2"}])


def judged(*answers: Answer, spec: StdioReward = SPEC, candidate: Any = "print(1)", **options: Any) -> GradeResult:
    """The result of a candidate whose runs came to this."""
    forks = Forks(list(answers), **options)
    judged.forks = forks  # type: ignore[attr-defined]  # for what a test looks at afterwards
    return asyncio.run(judge_outputs(forks.host(), spec, Member(index=0, candidate=candidate, seed="ab" * 32)))


def test_each_case_is_a_run_with_the_code_and_its_own_input() -> None:
    """And nothing of the spec besides."""
    result = judged(ran(b"1\n"), ran(b"3\n"))
    asked = judged.forks.asked  # type: ignore[attr-defined]  # the fake's own

    assert (result.reward, result.status, result.passed) == (0.5, "failed", 1)
    assert [request.stdin for request in asked] == [b"1", b"2"]
    assert asked[0].files == (("/work/main.py", b"print(1)", 0o644),)
    assert (result.seed, result.sandbox["isolation"]) == ("ab" * 32, "fake")


def test_a_build_that_fails_is_the_candidates() -> None:
    """With the compiler's words; no case is run."""
    spec = StdioReward(cases=SPEC.cases, build="cc main.c")
    result = judged(ran(status="exit", exit_code=1, stderr=b"no main"), spec=spec)

    assert (result.reward, result.status) == (0.0, "candidate_error")
    assert "no main" in result.reason
    assert len(judged.forks.asked) == 1  # type: ignore[attr-defined]  # the fake's own


@pytest.mark.parametrize("error", [NoSpace("full"), FileMissing("x")])
def test_what_the_candidate_left_on_its_disk_is_its_own_doing(error: Error) -> None:
    """It filled the disk in the first case, so nothing can be placed for the second."""
    result = judged(ran(b"1\n"), error)

    assert (result.reward, result.status) == (0.0, "candidate_error")


def test_a_sandbox_that_ends_meanwhile_is_lost() -> None:
    """To be tried again; other failures of ours are told apart from it."""
    assert is_lost(judged(SandboxGone("ended")))
    failed = judged(SandboxFailed("no"))
    assert failed.status == "infra_error" and not is_lost(failed)


def test_files_need_the_main_one() -> None:
    """Its absence is the candidate's failure."""
    assert judged(candidate={"other.py": ""}).reward == 0.0
    assert judged(ran(b"1"), ran(b"2"), candidate={"main.py": "x", "more.py": ""}).reward == 1.0
    member = Member(index=0, candidate={"main.py": "x"}, seed="")
    assert code_of(member, SPEC) == "x"


def test_after_a_few_hangs_nothing_more_is_tried() -> None:
    """A hundred cases that hang would hold a group for as many minutes."""
    spec = StdioReward(cases=[{"stdin": str(number), "stdout": ""} for number in range(9)])
    result = judged(*[ran(status="timeout", exit_code=None)] * 9, spec=spec)

    assert (result.status, result.reward, result.total) == ("timeout", 0.0, 9)
    assert len(judged.forks.asked) == 3  # type: ignore[attr-defined]  # the fake's own


def test_time_for_the_whole_candidate_is_bounded() -> None:
    """What does not get its turn has run out of time."""
    spec = StdioReward(cases=SPEC.cases, limits=CallLimits(total_s=1e-9))

    assert judged(spec=spec).status == "timeout"
    assert judged.forks.asked == []  # type: ignore[attr-defined]  # the fake's own


def test_a_checker_decides_in_a_judge() -> None:
    """In a sandbox of its own, where no candidate has been."""
    spec = StdioReward(
        cases=SPEC.cases, checker="def check(input, output, answer):\n    return output.strip() != '7'\n"
    )
    result = judged(ran(b"7"), ran(b"8"), spec=spec)

    assert result.reward == 0.5
    assert len(judged.forks.made) == 2  # type: ignore[attr-defined]  # the fake's own


def test_a_checker_that_cannot_run_is_the_specs_fault() -> None:
    """And one whose judge is not there is ours."""
    spec = StdioReward(cases=SPEC.cases, checker="raise ValueError('no')\n")

    assert judged(ran(b"7"), ran(b"8"), spec=spec).status == "spec_error"
    assert judged(ran(b"7"), ran(b"8"), spec=spec, refused=("judge",)).status == "infra_error"


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (ran(b"x"), "ok"),
        (ran(status="signal", exit_code=None, signal=24), "timeout"),
        (ran(status="exit", exit_code=152), "timeout"),
        (ran(status="signal", exit_code=None, signal=9), "signal"),
        (ran(b"x" * 9), "output"),
        (ran(status="oom", exit_code=None), "oom"),
    ],
)
def test_an_exec_is_read_as_a_run(outcome: Any, status: str) -> None:
    """CPU time used up is a timeout, more output than is kept an error of its own."""
    assert as_run(outcome, 8).status == status


def test_a_pinned_run_tells_what_held_for_every_case() -> None:
    """Each exec gets the candidate's seed, and not each the same process number."""
    acknowledged: dict[str, Any] = {"seed_ack": "verified"}
    forks = Forks([ran(b"1", pinned=("aslr", "pid"), **acknowledged), ran(b"2", pinned=("aslr",), **acknowledged)])
    member = Member(index=0, candidate="x", seed="ab" * 32, determinism="rng")
    result = asyncio.run(judge_outputs(forks.host(), SPEC, member))

    assert (result.seed_ack, result.pinned) == ("verified", ("aslr",))
    assert {request.seed for request in forks.asked} == {bytes.fromhex("ab" * 32)}


def test_a_case_that_cannot_be_vouched_for_counts() -> None:
    """Wherever it stands: the last case is not all of them."""
    forks = Forks([ran(status="timeout", exit_code=None, seed_ack="no-ack"), ran(b"2", seed_ack="verified")])
    member = Member(index=0, candidate="x", seed="ab" * 32, determinism="rng")

    assert asyncio.run(judge_outputs(forks.host(), SPEC, member)).seed_ack == "no-ack"
