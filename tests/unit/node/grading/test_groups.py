"""Groups that are asked for once, twice, by clients that stay and by clients that leave."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from hotbed.errors import InvalidRequest, InvalidSpec, TemplateFailed, UnknownTemplate
from hotbed.grading import UnitTestReward, to_wire
from hotbed.grading.verdicts import GradeResult, infra_failure
from hotbed.node.grading import groups, run
from hotbed.node.grading.groups import Graders, Group
from hotbed.node.grading.members import Member
from hotbed.node.ledger.entry import Entry
from hotbed.node.nursery import Nursery
from hotbed.node.waits import Waits
from hotbed.wire.grading import GradeDone, GradeLine, GradeRequest
from tests.unit.node.grading.boxes import FakeTemplate, Forks

SPEC = to_wire(UnitTestReward(tests="assert solve(1) == 2\n"))
REQUEST = GradeRequest(spec=SPEC, codes=("good", "bad"), group_id="g")


class FakeTemplates:
    """Knows one template."""

    def __init__(self) -> None:
        self.broken = False

    def spec(self, name: str) -> Any:
        """Refuses others."""
        if name != "python":
            raise UnknownTemplate(name)
        return FakeTemplate().spec

    async def warm(self, name: str) -> Any:
        """The template, unless it is broken."""
        if self.broken:
            raise TemplateFailed("it does not start")
        return FakeTemplate()


class Bench:
    """Graders whose judge pays good code, and what they noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.judged: list[str] = []
        self.seeds: list[str] = []
        self.noted: list[Entry] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.templates = FakeTemplates()
        self.nursery = Nursery()
        self.graders = Graders(
            templates=self.templates,  # type: ignore[arg-type]  # a fake
            fork=Forks(),
            nursery=self.nursery,
            note=lambda entry, lease=None: self.noted.append(entry),
            waits=Waits(),
            room=16,
            cores=2,
        )
        monkeypatch.setattr(run, "judge_sealed", self._judge)
        monkeypatch.setattr(run, "_BACKOFF_S", 0.001)

    async def _judge(
        self, host: Any, judges: Any, spec: Any, members: Sequence[Member], *, job: Any, on_result: Any
    ) -> None:
        self.seeds.append(job.judge_seed)
        await self.gate.wait()
        for member in members:
            self.judged.append(str(member.candidate))
            seen = {"stdout": "printed", "stderr": "!", "fork_time_ms": 0.25}
            result = GradeResult(reward=float(member.candidate == "good"), status="ok", sandbox=seen)
            await on_result(member.index, infra_failure("no") if member.candidate == "broken" else result)

    async def lines(self, request: GradeRequest = REQUEST, lease: Any = None, **options: Any) -> list[Any]:
        """Everything that a request is told."""
        return [line async for line in self.graders.grade(request, lease, **options)]


def played(monkeypatch: pytest.MonkeyPatch, scenario: Any) -> None:
    """Run a scenario over a bench, which must end with nothing in the background."""

    async def whole() -> None:
        bench = Bench(monkeypatch)
        await scenario(bench)
        assert await bench.nursery.wait_empty(timeout_s=5)

    asyncio.run(whole())


def test_lines_and_then_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each verdict is noted as well."""

    async def scenario(bench: Bench) -> None:
        *lines, done = await bench.lines()
        assert [(line.index, line.result["reward"]) for line in lines] == [(0, 1.0), (1, 0.0)]
        assert (done.group_id, done.graded, done.invalid, dict(done.statuses)) == ("g", 2, 0, {"ok": 2})
        assert [entry.id for entry in bench.noted] == [line.id for line in lines]
        entry = bench.noted[0]
        assert (entry.kind, entry.reward, entry.group_id, entry.template_digest) == ("grade", 1.0, "g", "sha256:0")
        assert msgspec.json.decode(entry.request)["code"] == "good"
        assert entry.details["judge_seed"] == bench.seeds[0]
        assert (entry.stdout, entry.stderr_total, entry.fork_ms) == (b"printed", 1, 0.25)
        assert lines[0].result["seed"] == entry.seed != lines[1].result["seed"]
        assert bench.graders.counts == {"groups": 1, "graded": 2, "invalid": 0, "retried": 0}

    played(monkeypatch, scenario)


def test_the_same_request_is_graded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the first is still being graded; without an id each stands alone."""

    async def scenario(bench: Bench) -> None:
        first, second = await asyncio.gather(bench.lines(), bench.lines())
        assert first == second == await bench.lines()
        assert bench.judged == ["good", "bad"]
        await bench.lines(replace(REQUEST, group_id=""))
        await bench.lines(replace(REQUEST, group_id=""))
        assert len(bench.judged) == 6

    played(monkeypatch, scenario)


def test_another_request_of_the_same_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that meant two things would pay one group with the other's verdicts."""

    async def scenario(bench: Bench) -> None:
        await bench.lines()
        with pytest.raises(InvalidRequest, match="'g'"):
            await bench.lines(replace(REQUEST, codes=("good",)))

    played(monkeypatch, scenario)


def test_a_named_group_outlives_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client comes back for it; one without a name ends with its request."""

    async def scenario(bench: Bench) -> None:
        bench.gate.clear()
        for request in (REQUEST, replace(REQUEST, group_id="")):
            asking = asyncio.ensure_future(bench.lines(request))
            await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        bench.gate.set()
        assert len(await bench.lines()) == 3
        assert bench.judged == ["good", "bad"]

    played(monkeypatch, scenario)


def test_a_broken_spec_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a template that is not there."""

    async def scenario(bench: Bench) -> None:
        with pytest.raises(InvalidSpec):
            await bench.lines(replace(REQUEST, spec={"type": "unit_tests", "tests": "assert ("}))
        with pytest.raises(UnknownTemplate):
            await bench.lines(replace(REQUEST, spec={**SPEC, "template": "none"}))
        assert bench.judged == []

    played(monkeypatch, scenario)


def test_a_group_that_failed_may_be_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody who follows it is told, and nobody is stuck with the failure."""

    async def scenario(bench: Bench) -> None:
        bench.templates.broken = True
        with pytest.raises(TemplateFailed):
            await bench.lines()
        bench.templates.broken = False
        assert len(await bench.lines()) == 3

    played(monkeypatch, scenario)


def test_members_without_a_verdict_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were tried again, and they cost nobody else anything."""

    async def scenario(bench: Bench) -> None:
        *_, done = await bench.lines(replace(REQUEST, codes=("broken", "good")))
        assert (done.invalid, done.retried) == (1, 2)

    played(monkeypatch, scenario)


def test_who_waits_hears_that_we_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a slow verdict and a dead node would look the same."""
    monkeypatch.setattr(groups, "BEAT_S", 0.01)

    async def scenario(bench: Bench) -> None:
        bench.gate.clear()
        asyncio.get_running_loop().call_later(0.05, bench.gate.set)
        lines = await bench.lines()
        assert lines[0] is None
        assert [type(line) for line in lines if line is not None] == [GradeLine, GradeLine, GradeDone]

    played(monkeypatch, scenario)


def test_only_so_many_groups_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest that have ended go first, by number and by what is kept of them."""
    monkeypatch.setattr(groups, "REMEMBERED", 2)

    async def scenario(bench: Bench) -> None:
        for name in "abc":
            await bench.lines(replace(REQUEST, group_id=name))
        assert [name for _, name in bench.graders._known] == ["b", "c"]
        monkeypatch.setattr(groups, "REMEMBERED_LINES", 3)
        await bench.lines(replace(REQUEST, group_id="d"))
        assert [name for _, name in bench.graders._known] == ["c", "d"]

    played(monkeypatch, scenario)


def test_seeds_make_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the group's seed, else its name; or those of a recorded grade."""

    async def scenario(bench: Bench) -> None:
        unnamed = replace(REQUEST, group_id="")
        seeded = replace(unnamed, seeds=("ab" * 32, None))
        for request in (seeded, seeded, REQUEST, unnamed, unnamed):
            await bench.lines(request)
        first, second, named, one, other = bench.seeds
        assert first == second
        assert len({first, named, one, other}) == 4
        assert [entry.seed for entry in bench.noted[:2]][0] == "ab" * 32
        assert [entry.determinism for entry in bench.noted[:2]] == ["rng", "none"]
        await bench.lines(unnamed, judge_seed="cd" * 32)
        assert bench.seeds[-1] == "cd" * 32

    played(monkeypatch, scenario)


def test_concurrency_is_at_most_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """More would only keep other groups from their turn."""

    async def scenario(bench: Bench) -> None:
        room = bench.graders._room_of(None)
        assert bench.graders._concurrency(replace(REQUEST, concurrency=4000), room) == 16
        assert bench.graders._concurrency(replace(REQUEST, concurrency=3), room) == 3

    played(monkeypatch, scenario)


def test_a_bug_is_told_and_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """As what it is."""

    async def scenario(bench: Bench) -> None:
        async def broken(*args: Any, **options: Any) -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(run, "judge_sealed", broken)
        with pytest.raises(ZeroDivisionError):
            await bench.lines()

    played(monkeypatch, scenario)


def test_a_group_has_ended_when_all_is_said() -> None:
    """By its last line, or by its failure."""

    async def scenario() -> None:
        group = Group("g", "d")
        assert not group.ended()
        group.add(GradeDone(group_id="g", graded=0, invalid=0))
        assert group.ended()
        failed = Group("g", "d")
        failed.fail(TemplateFailed("no"))
        assert failed.ended()

    asyncio.run(scenario())
