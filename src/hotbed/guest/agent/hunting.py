"""Which processes belong to a job, and how to kill every one of them.

A job's processes are those it started, however far removed. A parent that has ended leaves orphans, and setsid(2)
leaves no session to go by, so each job is also *marked*: its soft RLIMIT_MSGQUEUE is a number of its own, which every
descendant inherits across fork and exec, and which costs one system call. A process that changed that limit is taken to
belong to a job if it is younger than it and no other job can claim it. All this is bookkeeping between jobs of one
sandbox; what bounds the sandbox is its pid namespace.
"""

from __future__ import annotations

import os
import resource
import signal
from typing import Callable, Dict, FrozenSet, Iterable, Mapping, NamedTuple, Optional, Sequence, Set

from . import processes
from .processes import Process, closure

_MARKS = 4096
_ROUNDS = 1000
_HARD = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
_TOP = 819_200 if _HARD == resource.RLIM_INFINITY else _HARD  # 819,200 is the kernel's default (MQ_BYTES_MAX)


class Claim(NamedTuple):
    """How to recognise a job's processes."""

    leaders: FrozenSet[int]
    mark: Optional[int]
    since: int


class Marks:
    """Hands out marks: each is this process's soft limit until the next, so that what it then starts inherits it."""

    _given = 0

    def next(self) -> Optional[int]:
        """Mark what is started from now on, or None where the limit is too low to tell numbers apart."""
        if _TOP < 2 * _MARKS:
            return None
        self._given += 1
        mark = _TOP - 1 - self._given % _MARKS
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (mark, _HARD))
        return mark


def mark_of(pid: int) -> Optional[int]:
    """The mark of a process, or None if it has none of ours."""
    try:
        soft = resource.prlimit(pid, resource.RLIMIT_MSGQUEUE)[0]
    except (OSError, ValueError):
        return None
    return soft if _TOP - _MARKS <= soft < _TOP else None


class Census:
    """The processes below the agent and their marks, looked at once each: a hunt must be faster than its prey."""

    def __init__(self) -> None:
        self._processes: Dict[int, Process] = {}
        self._marks: Dict[int, Optional[int]] = {}

    def take(self) -> None:
        """Note who is new and who is gone. Of the others, the first look counts: orphans keep their parent so."""
        present = processes.pids()
        for pid in self._processes.keys() - present:
            del self._processes[pid]
            del self._marks[pid]
        for pid in present - self._processes.keys():
            process = processes.look(pid)
            if process is not None:
                self._processes[pid] = process
                self._marks[pid] = mark_of(pid)

    def members(self, claim: Claim, others: Sequence[Claim]) -> Set[int]:
        """The living processes of a job."""
        own = os.getpid()
        inside = processes.below(self._processes, own)
        return members(inside, self._marks, claim, others)

    def everybody(self) -> Set[int]:
        """Everybody below the agent."""
        return set(processes.below(self._processes, os.getpid()))


def members(
    present: Mapping[int, Process], marks: Mapping[int, Optional[int]], claim: Claim, others: Iterable[Claim]
) -> Set[int]:
    """The living processes of a job, out of those present."""
    marked = {pid for pid in present if marks[pid] is not None and marks[pid] == claim.mark}
    mine = closure(present, claim.leaders | marked)
    theirs = closure(present, frozenset().union(*(other.leaders for other in others)))
    strangers = {
        pid
        for pid, process in present.items()
        if marks[pid] is None and process.start >= claim.since and pid not in theirs
    }
    return {pid for pid in mine | strangers if pid in present and present[pid].alive}


def kill(find: Callable[[Census], Set[int]]) -> None:
    """Kill every process that `find` picks, and those that they start meanwhile.

    A stopped process starts none: so all are stopped before the first is killed, again and again until a look finds no
    new one. The same holds for the kill, which a process can outlive only if it was born in between.
    """
    census = Census()
    for number in (signal.SIGSTOP, signal.SIGKILL):
        done: Set[int] = set()
        for _ in range(_ROUNDS):
            census.take()
            new = find(census) - done
            if not new:
                break
            for pid in new:
                send(pid, number)
            done |= new


def end_everything() -> None:
    """The kernel kills a pid namespace with its pid 1; elsewhere we do."""
    if os.getpid() != 1:
        kill(lambda census: census.everybody())


def send(pid: int, number: int) -> None:
    """Signal a process that may be gone."""
    try:
        os.kill(pid, number)
    except OSError:
        pass
