"""Whose process is whose, when parents end and sessions change."""

from __future__ import annotations

import os
import resource
import signal

from hotbed.guest.agent import hunting
from hotbed.guest.agent.hunting import Claim, members
from hotbed.guest.agent.processes import Process

MINE = Claim(leaders=frozenset({10}), mark=500, since=100)
OTHER = Claim(leaders=frozenset({20}), mark=501, since=90)


def process(parent: int, session: int, *, start: int = 200, alive: bool = True) -> Process:
    """A process that is alive and young."""
    return Process(parent=parent, session=session, start=start, alive=alive)


def test_descendants_sessions_and_marks_belong() -> None:
    """A daemon has only its mark."""
    present = {10: process(1, 10), 11: process(10, 11), 12: process(1, 11), 13: process(1, 13), 14: process(13, 14)}
    marks = {10: 500, 11: 500, 12: 500, 13: 500, 14: None}

    assert members(present, marks, MINE, [OTHER]) == {10, 11, 12, 13, 14}


def test_other_jobs_and_the_dead_do_not() -> None:
    """Nor what a job of the past left, whose mark is neither's."""
    present = {
        20: process(1, 20),
        21: process(20, 21),
        30: process(1, 30),
        31: process(1, 31, start=50),
        32: process(1, 32, alive=False),
    }
    marks = {20: 501, 21: None, 30: 499, 31: None, 32: 500}

    assert members(present, marks, MINE, [OTHER]) == set()


def test_a_young_stranger_is_taken() -> None:
    """It changed its mark, and nobody else can have started it."""
    present = {40: process(1, 40)}

    assert members(present, {40: None}, MINE, [OTHER]) == {40}


def test_an_ended_leader_still_leads_its_session() -> None:
    """The number stays with the session."""
    present = {15: process(1, 10)}

    assert members(present, {15: 7}, MINE, []) == {15}


def test_marks_are_inherited_across_fork_and_exec() -> None:
    """And differ from job to job."""
    before = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    marks = hunting.Marks()
    first = marks.next()
    pid = os.posix_spawnp("sleep", ["sleep", "30"], {"PATH": os.defpath})
    second = marks.next()
    found = hunting.mark_of(pid)
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, before)
    hunting.send(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    assert first is not None and second is not None
    assert (found, first != second) == (first, True)
    assert hunting.mark_of(pid) is None


def test_a_census_keeps_the_first_look() -> None:
    """An orphan's parent is the one it had."""
    census = hunting.Census()
    pid = os.posix_spawnp("sleep", ["sleep", "30"], {"PATH": os.defpath})
    census.take()
    found = census.members(Claim(frozenset({pid}), None, 2**40), [])
    hunting.kill(lambda taken: taken.members(Claim(frozenset({pid}), None, 2**40), []))
    status = os.waitpid(pid, 0)[1]
    census.take()

    assert found == {pid}
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert census.members(Claim(frozenset({pid}), None, 2**40), []) == set()
