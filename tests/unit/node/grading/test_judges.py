"""Judges that may judge again: whose, for how long, and when not."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from hotbed.guest import frames
from hotbed.node.grading import judges
from hotbed.node.grading.host import Host
from hotbed.node.grading.judges import Judge, Judges
from hotbed.node.leases import Lease
from hotbed.node.nursery import Nursery
from tests.unit.node.grading import boxes
from tests.unit.node.grading.boxes import Forks

ROOM = 64


def says(monkeypatch: pytest.MonkeyPatch, **done: Any) -> None:
    """Every judge's word at the end of its job."""

    def main(channel: socket.socket, config: dict[str, Any]) -> None:
        connection = frames.Connection(channel)
        try:
            while True:
                connection.receive()
                frames.send(channel, {"op": "done", "id": "job", **done})
        except frames.Closed:
            pass

    monkeypatch.setitem(boxes.PROGRAMS, "judge", main)


class Stage:
    """A node's judges, and hosts under leases."""

    def __init__(self) -> None:
        self.nursery = Nursery()
        self.judges = Judges(self.nursery)
        self.forks = Forks(solos=True)
        self.leases = [Lease(), Lease()]

    def host(self, which: int = 0, **options: Any) -> Host:
        return self.forks.host(lease=self.leases[which], **options)

    async def judge(self, host: Host, *, room: int = ROOM) -> Judge:
        """Have one do a job."""
        judge = await self.judges.take(host)
        await judge.channel.send({"op": "judge"}, timeout_s=5)
        self.judges.give_back(judge, host, room=room)
        await self.nursery.wait_empty(timeout_s=5)
        return judge

    def close(self) -> None:
        for waiting in self.judges._idle.values():
            for judge in waiting:
                judge.end()


def play(scenario: Any) -> None:
    """Run it."""

    async def run() -> None:
        stage = Stage()
        try:
            await scenario(stage)
        finally:
            stage.close()

    asyncio.run(run())


def test_one_that_leaves_nothing_judges_the_same_leases_next_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group that gave it back does not end it; the next one looks after it."""
    says(monkeypatch, clean=True)

    async def scenario(stage: Stage) -> None:
        first, second = stage.host(), stage.host()
        judge = await stage.judge(first)
        assert first.made == [] and len(stage.judges) == 1

        again = await stage.judges.take(second)
        assert again is judge and second.made == [judge.running.held]
        assert len(stage.forks.made) == 1
        again.end()

    play(scenario)


def test_another_lease_has_another_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one client's tests did to a sandbox is no other client's concern."""
    says(monkeypatch, clean=True)

    async def scenario(stage: Stage) -> None:
        judge = await stage.judge(stage.host(0))
        other = await stage.judges.take(stage.host(1))
        assert other is not judge
        other.end()

    play(scenario)


@pytest.mark.parametrize("done", [{"clean": False}, {}, {"clean": 1}, {"clean": True, "op": "verdict"}])
def test_one_that_does_not_say_so_ends(monkeypatch: pytest.MonkeyPatch, done: dict[str, Any]) -> None:
    """Only the word itself counts."""
    says(monkeypatch, **done)

    async def scenario(stage: Stage) -> None:
        judge = await stage.judge(stage.host())
        assert len(stage.judges) == 0 and judge.running.held.ended  # type: ignore[attr-defined]  # a fake

    play(scenario)


def test_without_a_lease_or_room_or_after_many_jobs_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would look after it, or it would take the place of what is needed more."""
    says(monkeypatch, clean=True)
    monkeypatch.setattr(judges, "MOST_JOBS", 2)

    async def scenario(stage: Stage) -> None:
        await stage.judge(stage.forks.host())
        await stage.judge(stage.host(), room=7)
        assert len(stage.judges) == 0
        await stage.judge(stage.host())
        assert len(stage.judges) == 1
        await stage.judge(stage.host())
        assert len(stage.judges) == 0
        assert all(held.ended for held in stage.forks.made)

    play(scenario)


def test_it_waits_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one whose sandbox has ended meanwhile is not taken."""
    says(monkeypatch, clean=True)
    monkeypatch.setattr(judges, "IDLE_S", 0.01)

    async def scenario(stage: Stage) -> None:
        judge = await stage.judge(stage.host())
        while len(stage.judges):
            await asyncio.sleep(0.005)
        assert judge.running.held.ended  # type: ignore[attr-defined]  # a fake

        monkeypatch.setattr(judges, "IDLE_S", 60)
        judge = await stage.judge(stage.host())
        judge.running.held.box.programs[0].end()  # type: ignore[attr-defined]  # a fake
        while not judge.channel.ended:
            await asyncio.sleep(0.005)
        other = await stage.judges.take(stage.host())
        assert other is not judge
        other.end()

    play(scenario)
