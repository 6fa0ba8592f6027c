"""Which processes belong to a job, how much memory they hold, and how to kill every one of them.

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
import time
from typing import Callable, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set

_MARKS = 4096
_HARD = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
_TOP = 819_200 if _HARD == resource.RLIM_INFINITY else _HARD  # 819,200 is the kernel's default (MQ_BYTES_MAX)
_ROUNDS = 200
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
_BOOTTIME = time.CLOCK_BOOTTIME


class Process(NamedTuple):
    """One line of /proc/PID/stat."""

    parent: int
    session: int
    start: int
    alive: bool


class Claim(NamedTuple):
    """How to recognise a job's processes."""

    leaders: FrozenSet[int]
    mark: Optional[int]
    since: int


class Marks:
    """Hands out marks: each is this process's soft limit until the next, so that what it then starts inherits it."""

    def __init__(self) -> None:
        self._given = 0

    def next(self) -> Optional[int]:
        """Mark what is started from now on, or None where the limit is too low to tell numbers apart."""
        if _TOP < 2 * _MARKS:
            return None
        self._given += 1
        mark = _TOP - 1 - self._given % _MARKS
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (mark, _HARD))
        return mark

    def of(self, pid: int) -> Optional[int]:
        """The mark of a process, or None if it has none of ours."""
        try:
            soft = resource.prlimit(pid, resource.RLIMIT_MSGQUEUE)[0]
        except (OSError, ValueError):
            return None
        return soft if _TOP - _MARKS <= soft < _TOP else None


def now_ticks() -> int:
    """This moment as /proc/PID/stat tells start times."""
    return int(time.clock_gettime(_BOOTTIME) * _TICKS)


def table() -> Dict[int, Process]:
    """All processes that can be seen."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = look(int(name))
            if process is not None:
                found[int(name)] = process
    return found


def look(pid: int) -> Optional[Process]:
    """One process, or None if it is gone."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fields = os.read(fd, 4096).rpartition(b") ")[2].split()
    except OSError:
        return None
    finally:
        os.close(fd)
    return Process(int(fields[1]), int(fields[3]), int(fields[19]), fields[0] not in (b"Z", b"X", b"x"))


def closure(processes: Mapping[int, Process], seeds: Iterable[int]) -> Set[int]:
    """The seeds, their descendants, and the sessions any of them leads."""
    inside = set(seeds)
    grown = True
    while grown:
        more = {
            p
            for p, about in processes.items()
            if p not in inside and (about.parent in inside or about.session in inside)
        }
        grown = bool(more)
        inside |= more
    return inside


def members(
    processes: Mapping[int, Process], claim: Claim, others: Sequence[Claim], mark_of: Callable[[int], Optional[int]]
) -> Set[int]:
    """The living processes of a job, out of those below the agent."""
    marks = {pid: mark_of(pid) for pid in processes}
    mine = closure(
        processes, claim.leaders | {p for p, mark in marks.items() if mark is not None and mark == claim.mark}
    )
    theirs = closure(processes, frozenset().union(*(other.leaders for other in others)))
    strangers = {
        pid
        for pid, about in processes.items()
        if marks[pid] is None and about.start >= claim.since and pid not in theirs
    }
    return {pid for pid in mine | strangers if pid in processes and processes[pid].alive}


def below(processes: Mapping[int, Process], root: int) -> Dict[int, Process]:
    """The descendants of a process: in a pid namespace of its own, everybody else."""
    return {
        pid: processes[pid]
        for pid in closure({p: a._replace(session=0) for p, a in processes.items()}, [root]) - {root}
        if pid in processes
    }


def kill_all(find: Callable[[], Set[int]]) -> None:
    """Kill every process that `find` finds, and those that they start meanwhile.

    A stopped process starts none: so all are stopped before the first is killed, again and again until a look finds no
    new one. The same holds for the kill, which a process can outlive only if it was born in between.
    """
    for number in (signal.SIGSTOP, signal.SIGKILL):
        done: Set[int] = set()
        for _ in range(_ROUNDS):
            new = find() - done
            if not new:
                break
            for pid in new:
                send(pid, number)
            done |= new


def send(pid: int, number: int) -> None:
    """Signal a process that may be gone."""
    try:
        os.kill(pid, number)
    except OSError:
        pass


def resident_kib(pids: Iterable[int]) -> int:
    """Memory of these processes, pages they share counted once each: quick, and never too low."""
    return sum(int(numbers[1]) for numbers in _numbers(pids, "statm")) * _PAGE_KIB


def proportional_kib(pids: Iterable[int]) -> int:
    """Memory of these processes, shared pages divided among those who share them: slow."""
    total = 0
    for pid in pids:
        sizes = [line.split()[1] for line in _lines(pid, "smaps_rollup") if line.startswith(b"Pss:")]
        total += int(sizes[0]) if sizes else resident_kib([pid])
    return total


def _numbers(pids: Iterable[int], name: str) -> List[List[bytes]]:
    return [lines[0].split() for lines in (_lines(pid, name) for pid in pids) if lines]


def _lines(pid: int, name: str) -> List[bytes]:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read().splitlines()
    except OSError:
        return []
