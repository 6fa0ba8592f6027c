"""A group from its first sandbox to its last verdict, with judges that are scripted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from hotbed.grading import CommandReward, StdioReward, UnitTestReward
from hotbed.grading.verdicts import GradeResult, infra_failure
from hotbed.node.grading import run
from hotbed.node.grading.host import Lanes, Room
from hotbed.node.grading.judges import Judges
from hotbed.node.grading.members import Member, lost_sandbox
from hotbed.node.grading.run import ATTEMPTS, GroupRun, Later, Plan, is_straggling
from hotbed.node.nursery import Nursery
from tests.unit.node.grading.boxes import Forks

SPEC = UnitTestReward(tests="assert solve(1) == 2\n")
PAID = GradeResult(reward=1.0)
Judge = Callable[[Member, int], Awaitable[GradeResult | None]]


class Scripted:
    """A group whose members get what a function says; `asked` has the members of each judge."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, judge: Judge, *, size: int = 4, **plan: Any) -> None:
        self.asked: list[list[int]] = []
        self.lines: list[tuple[int, GradeResult]] = []
        self.rounds: dict[int, int] = {}
        self._judge = judge
        members = tuple(Member(index=index, candidate="x", seed="") for index in range(size))
        given = {"spec": SPEC, "members": members, "judge_seed": "0", "concurrency": 16, **plan}
        self.plan = Plan(**given)
        monkeypatch.setattr(run, "judge_sealed", self._sealed)
        monkeypatch.setattr(run, "_BACKOFF_S", 0.001)

    async def _sealed(
        self, host: Any, judges: Any, spec: Any, members: Sequence[Member], *, job: Any, on_result: Any
    ) -> None:
        self.asked.append([member.index for member in members])

        async def one(member: Member) -> None:
            self.rounds[member.index] = self.rounds.get(member.index, 0) + 1
            result = await self._judge(member, self.rounds[member.index])
            if result is not None:
                await on_result(member.index, result)

        await asyncio.gather(*map(one, members))

    async def _emit(self, member: Member, result: GradeResult) -> None:
        self.lines.append((member.index, result))

    def play(self, *, room: int = 64) -> tuple[dict[str, int], int]:
        """Run it; statuses, and how many were graded again."""

        async def scenario() -> tuple[dict[str, int], int]:
            judges = Judges(Nursery())
            group = GroupRun(self.plan, Forks().host(), Room(room), Lanes([0, 1]), judges, self._emit)
            return dict(await group.run()), group.retried

        return asyncio.run(scenario())

    @property
    def rewards(self) -> list[float | None]:
        """In the members' order."""
        return [result.reward for _, result in sorted(self.lines, key=lambda line: line[0])]


async def paid(member: Member, attempt: int) -> GradeResult:
    """Everybody is."""
    return PAID


def test_each_member_has_one_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many chunks there are."""
    group = Scripted(monkeypatch, paid, size=21)

    assert group.play() == ({"ok": 21}, 0)
    assert sorted(index for index, _ in group.lines) == list(range(21))
    assert [len(chunk) for chunk in group.asked] == [8, 8, 5]


def test_a_group_of_none_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once."""
    assert Scripted(monkeypatch, paid, size=0).play() == ({}, 0)


def test_only_what_failed_on_our_side_is_graded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others keep what they have."""

    async def judge(member: Member, attempt: int) -> GradeResult | None:
        if member.index == 1:
            return infra_failure("no") if attempt < ATTEMPTS else PAID
        return None if member.index == 2 and attempt == 1 else PAID

    group = Scripted(monkeypatch, judge)

    assert group.play() == ({"ok": 4}, 3)
    assert group.asked == [[0, 1, 2, 3], [1, 2], [1]]


def test_what_fails_every_time_has_no_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says why."""

    async def judge(member: Member, attempt: int) -> GradeResult:
        return infra_failure(f"attempt {attempt}")

    group = Scripted(monkeypatch, judge, size=1)

    assert group.play() == ({"infra_error": 1}, ATTEMPTS - 1)
    assert group.lines[0][1].reason == f"attempt {ATTEMPTS}"


def test_a_sandbox_lost_every_time_is_the_candidates_doing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once may be our trouble; always, in fresh sandboxes, is not. A candidate must not be able to mask its reward."""

    async def judge(member: Member, attempt: int) -> GradeResult:
        return lost_sandbox("gone") if member.index == 0 or attempt == 1 else PAID

    group = Scripted(monkeypatch, judge, size=2)
    group.play()

    assert group.rewards == [0.0, 1.0]


def test_the_deadline_is_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is done keeps the verdict; who is not has none."""

    async def judge(member: Member, attempt: int) -> GradeResult:
        if member.index:
            await asyncio.sleep(60)
        return PAID

    group = Scripted(monkeypatch, judge, size=2, deadline_s=0.05)

    assert group.play() == ({"ok": 1, "infra_error": 1}, 0)
    assert "deadline of 0.05 s" in group.lines[1][1].reason


def test_stragglers_are_graded_beside_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first verdict counts; a second attempt that fails on our side changes nothing."""
    monkeypatch.setattr(run, "_HEDGE_FLOOR_S", 0.0)

    async def judge(member: Member, attempt: int) -> GradeResult:
        if member.index == 0 and attempt == 1:
            await asyncio.sleep(60)
        return PAID

    group = Scripted(monkeypatch, judge)
    begun = time.monotonic()

    assert group.play() == ({"ok": 4}, 1)
    assert time.monotonic() - begun < 10
    assert group.asked == [[0, 1, 2, 3], [0]]


def test_a_failed_hedge_leaves_the_first_attempt_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even on the last attempt, where a failure of ours would be final."""
    monkeypatch.setattr(run, "_HEDGE_FLOOR_S", 0.0)
    monkeypatch.setattr(run, "ATTEMPTS", 1)

    async def judge(member: Member, attempt: int) -> GradeResult:
        if member.index == 0 and attempt == 1:
            await asyncio.sleep(1.5)
        return PAID if attempt == 1 else infra_failure("no")

    group = Scripted(monkeypatch, judge)
    group.play()

    assert group.rewards == [1.0] * 4


def test_chunks_fit_into_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node with three sandboxes for grading judges two at a time."""
    group = Scripted(monkeypatch, paid)
    group.play(room=3)

    assert group.asked == [[0, 1], [2, 3]]


def test_concurrency_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never more alive than asked for."""
    alive, most = 0, 0

    async def judge(member: Member, attempt: int) -> GradeResult:
        nonlocal alive, most
        alive += 1
        most = max(most, alive)
        await asyncio.sleep(0)
        alive -= 1
        return PAID

    Scripted(monkeypatch, judge, size=9, concurrency=2).play()

    assert most <= 2


@pytest.mark.parametrize("name", ["judge_outputs", "judge_repository"])
def test_programs_are_judged_one_by_one(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """They share no judge."""

    async def judge(host: Any, spec: Any, member: Member) -> GradeResult:
        return GradeResult(reward=float(member.index))

    spec = StdioReward(cases=[{}]) if name == "judge_outputs" else CommandReward(command="true")
    group = Scripted(monkeypatch, paid, size=3, spec=spec)
    monkeypatch.setattr(run, name, judge)
    group.play()

    assert group.rewards == [0.0, 1.0, 2.0]


def test_a_bug_is_an_error_of_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a verdict."""

    async def judge(member: Member, attempt: int) -> GradeResult:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Scripted(monkeypatch, judge).play()


def test_stragglers_are_few_late_and_begun() -> None:
    """Else a slow group would be graded twice as a whole."""
    long_ago = time.monotonic() - 100
    took = [1.0] * 19

    assert is_straggling([long_ago], took, 20)
    assert not is_straggling([], took, 20)
    assert not is_straggling([long_ago], [], 20)
    assert not is_straggling([long_ago] * 3, took, 20)
    assert not is_straggling([None], took, 20)
    assert not is_straggling([time.monotonic()], took, 20)
    assert not is_straggling([long_ago], [60.0] * 19, 20)


def test_what_is_to_come_later_may_never_begin() -> None:
    """And what has begun is ended."""

    async def scenario() -> None:
        begun = asyncio.Event()

        async def work() -> None:
            begun.set()
            await asyncio.sleep(60)

        never, soon = Later(60, work), Later(0, work)
        await asyncio.wait_for(begun.wait(), 5)
        assert (never.begun(), soon.begun()) == (False, True)
        await never.end()
        await soon.end()

    asyncio.run(scenario())
