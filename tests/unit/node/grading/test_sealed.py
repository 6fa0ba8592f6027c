"""A judge and its candidates, as plain processes; and judges and sandboxes that fail."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from dataclasses import replace
from typing import Any

import pytest

from hotbed.errors import SandboxGone, TemplateFailed
from hotbed.grading import UnitTestReward, protocol
from hotbed.grading.verdicts import GradeResult
from hotbed.guest import frames
from hotbed.node.grading import sealed
from hotbed.node.grading.judges import Judges
from hotbed.node.grading.members import Member, is_lost
from hotbed.node.grading.sealed import Job, end_of_alone
from hotbed.node.nursery import Nursery
from hotbed.runtime.base import ProgramEnd
from tests.unit.node.grading import boxes
from tests.unit.node.grading.boxes import FakeProgram, Forks, Results

SPEC = UnitTestReward(tests="assert solve(1) == 2\n")
GOOD, BAD, DEAD = "def solve(x):\n    return x + 1\n", "def solve(x):\n    return x\n", "import os\nos._exit(3)\n"


def judged(forks: Forks, *codes: Any, determinism: Any = "none", spec: UnitTestReward = SPEC) -> dict[int, GradeResult]:
    """What becomes of a few siblings."""

    async def scenario() -> dict[int, GradeResult]:
        results = Results()
        members = [
            Member(index=index, candidate=code, seed=f"{index:064x}", determinism=determinism)
            for index, code in enumerate(codes)
        ]
        job = Job(judge_seed="0" * 64)
        await sealed.judge_sealed(forks.host(), Judges(Nursery()), spec, members, job=job, on_result=results)
        return results.found

    return asyncio.run(scenario())


def judge_that(monkeypatch: pytest.MonkeyPatch, *answers: dict[str, Any]) -> None:
    """A judge that answers its job with these frames and ends."""

    def main(channel: socket.socket, config: dict[str, Any]) -> None:
        frames.Connection(channel).receive()
        for answer in answers:
            frames.send(channel, answer)

    monkeypatch.setitem(boxes.PROGRAMS, "judge", main)


def test_siblings_have_their_own_verdicts() -> None:
    """One judge for all; a candidate's death is its own."""
    forks = Forks()
    found = judged(forks, GOOD, BAD, DEAD, GOOD)

    assert [found[index].reward for index in range(4)] == [1.0, 0.0, 0.0, 1.0]
    assert found[2].status == "candidate_error"
    assert found[0].seed == "0" * 64
    assert found[0].sandbox["isolation"] == "fake"
    assert len(forks.made) == 5
    assert all(held.ended for held in forks.made)


def test_files_without_the_module_are_the_candidates_failure() -> None:
    """No name that a model chooses is worth a masked reward."""
    found = judged(Forks(), {"solution.py": GOOD}, {"other.py": GOOD})

    assert (found[0].reward, found[1].reward) == (1.0, 0.0)
    assert "solution.py" in found[1].reason


def test_no_sandbox_is_our_failure() -> None:
    """For the one that got none; the sibling is judged."""
    found = judged(Forks(failures=[TemplateFailed("no")]), GOOD, GOOD)

    assert sorted(str(result.reward) for result in found.values()) == ["1.0", "None"] or {
        result.reward for result in found.values()
    } == {None}
    assert {result.status for result in found.values()} <= {"ok", "infra_error"}


def test_no_judge_is_our_failure() -> None:
    """For all of its candidates."""
    found = judged(Forks(refused=("judge",)), GOOD, BAD)

    assert [result.reward for result in found.values()] == [None, None]
    assert "no judge" in found[0].reason


def test_no_candidate_program_is_our_failure() -> None:
    """It never ran."""
    found = judged(Forks(refused=("candidate",)), GOOD)

    assert found[0].status == "infra_error"


def test_a_judge_that_dies_gives_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """And none is made up."""
    judge_that(monkeypatch)
    found = judged(Forks(), GOOD, BAD)

    assert [result.status for result in found.values()] == ["infra_error", "infra_error"]


@pytest.mark.parametrize(
    "frame",
    [
        {"op": "verdict", "index": 9},
        {"op": "verdict", "index": 0, "status": "ok", "checks": 7},
        {"op": "usage", "index": -1, "id": "job"},
        {"op": "usage", "index": 0},
        {"op": "nonsense"},
    ],
)
def test_a_judge_that_talks_nonsense_gives_no_verdict(monkeypatch: pytest.MonkeyPatch, frame: dict[str, Any]) -> None:
    """Tests are users' code: what they take the judge over for is not believed."""
    judge_that(monkeypatch, frame)

    assert judged(Forks(), GOOD)[0].status == "infra_error"


def test_the_first_verdict_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """And questions about waiting are answered meanwhile."""
    verdict = {"op": "verdict", "index": 0, "status": "ok", "checks": [["a", "passed", ""]]}
    judge_that(monkeypatch, {"op": "usage", "id": "job", "index": 0}, verdict, {**verdict, "status": "failed"})

    assert judged(Forks(), GOOD)[0].reward == 1.0


def test_a_sandbox_that_died_is_lost_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge saw a closed socket, as if the program had ended; the node knows better."""

    async def gone(self: FakeProgram) -> Any:
        raise SandboxGone("its template has ended")

    monkeypatch.setattr(FakeProgram, "wait", gone)
    found = judged(Forks(), DEAD, GOOD)

    assert is_lost(found[0])
    assert found[1].reward == 1.0


def test_memory_is_named_and_changes_no_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's word for why the program died."""
    monkeypatch.setattr(boxes.FakeBox, "ran_out_of_memory", lambda self: True)
    found = judged(Forks(), DEAD, GOOD)

    assert (found[0].status, found[0].reward) == ("oom", 0.0)
    assert found[1].status == "ok"


def test_what_was_to_be_pinned_and_was_not_has_no_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed that had no effect must not look like one that had."""
    pinned = judged(Forks(), GOOD, determinism="rng")[0]
    assert (pinned.seed_ack, pinned.pinned) == ("verified", ("getrandom", "pid"))
    assert judged(Forks(), GOOD)[0].pinned == ()

    async def unpinned(self: FakeProgram) -> tuple[str, tuple[str, ...]]:
        return "no-ack", ()

    monkeypatch.setattr(FakeProgram, "pins", unpinned)
    assert judged(Forks(), GOOD, determinism="rng")[0].status == "infra_error"


def test_a_judge_without_a_word_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended, and its candidates are free for another one."""

    def main(channel: socket.socket, config: dict[str, Any]) -> None:
        signal.pause()

    monkeypatch.setitem(boxes.PROGRAMS, "judge", main)
    monkeypatch.setattr(protocol, "deadline_s", lambda spec, candidates: 0.1)
    found = judged(Forks(), GOOD, spec=replace(SPEC))

    assert found[0].status == "infra_error"
    assert "in time" in found[0].reason


def test_a_candidate_alone_in_its_sandbox_is_judged_likewise() -> None:
    """It and its sandbox are one, so what it printed is asked of the sandbox."""
    found = judged(Forks(solos=True), GOOD, BAD, DEAD)

    assert [found[index].reward for index in range(3)] == [1.0, 0.0, 0.0]
    assert found[1].sandbox["stdout"] == "printed"


def test_a_candidate_that_never_came_to_be_is_our_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot have been its own doing: it had not been told its code."""
    monkeypatch.setitem(boxes.PROGRAMS, "candidate", lambda channel, config: None)
    found = judged(Forks(solos=True), GOOD)

    assert (found[0].status, found[0].reward) == ("infra_error", None)
    assert "did not come to be" in found[0].reason


def test_a_pid_1_that_was_killed_was_killed_from_outside() -> None:
    """And one that used up its CPU time says so by its exit code."""
    with pytest.raises(SandboxGone):
        end_of_alone(ProgramEnd(status="signal", exit_code=None, signal=9))
    assert end_of_alone(ProgramEnd(status="oom", exit_code=None, signal=9)).status == "oom"
    assert end_of_alone(ProgramEnd(status="exit", exit_code=27)).signal == 27
    assert end_of_alone(ProgramEnd(status="exit", exit_code=3)).exit_code == 3


def test_nothing_stays_open() -> None:
    """Not after verdicts, not after failures."""
    judged(Forks(), GOOD)
    before = len(os.listdir("/proc/self/fd"))
    for forks in (
        Forks(),
        Forks(refused=("judge",)),
        Forks(refused=("candidate",)),
        Forks(failures=[TemplateFailed()]),
        Forks(solos=True),
        Forks(solos=True, refused=("judge",)),
        Forks(solos=True, refused=("candidate",)),
    ):
        judged(forks, GOOD, BAD)

    assert len(os.listdir("/proc/self/fd")) == before
