"""What /proc tells about processes: who descends from whom, and how much memory they hold."""

from __future__ import annotations

import os
import time
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Set

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


class Process(NamedTuple):
    """One line of /proc/PID/stat."""

    parent: int
    session: int
    start: int
    alive: bool


def now_ticks() -> int:
    """This moment as /proc/PID/stat tells start times."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)


def pids() -> Set[int]:
    """All processes that can be seen."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def table() -> Dict[int, Process]:
    """A look at each of them."""
    looks = {pid: look(pid) for pid in pids()}
    return {pid: process for pid, process in looks.items() if process is not None}


def look(pid: int) -> Optional[Process]:
    """One process, or None if it is gone."""
    text = _read(pid, "stat")
    fields = text.rpartition(b") ")[2].split()
    if len(fields) < 20:
        return None
    return Process(int(fields[1]), int(fields[3]), int(fields[19]), fields[0] not in (b"Z", b"X", b"x"))


def closure(processes: Mapping[int, Process], seeds: Iterable[int]) -> Set[int]:
    """The seeds, their descendants, and the sessions that any of them leads."""
    inside = set(seeds)
    grown = True
    while grown:
        outside = [(pid, process) for pid, process in processes.items() if pid not in inside]
        more = {pid for pid, process in outside if process.parent in inside or process.session in inside}
        grown = bool(more)
        inside |= more
    return inside


def below(processes: Mapping[int, Process], root: int) -> Dict[int, Process]:
    """The descendants of a process; those of pid 1 are everybody else."""
    if root == 1:
        return {pid: process for pid, process in processes.items() if pid != 1}
    lines = {pid: process._replace(session=0) for pid, process in processes.items()}
    return {pid: processes[pid] for pid in closure(lines, [root]) - {root}}


def living() -> List[int]:
    """The living descendants of this process."""
    return [pid for pid, process in below(table(), os.getpid()).items() if process.alive]


def threads() -> int:
    """The threads of all processes that can be seen, which is what limits on processes count."""
    numbers = [_read(pid, "stat").rpartition(b") ")[2].split() for pid in pids()]
    return sum(int(fields[17]) for fields in numbers if len(fields) > 17)


def resident_kib(pids: Iterable[int]) -> int:
    """Memory of these processes, what they share counted for each: quick, and never too low."""
    numbers = [_read(pid, "statm").split() for pid in pids]
    return sum(int(words[1]) for words in numbers if words) * _PAGE_KIB


def proportional_kib(pids: Iterable[int]) -> int:
    """Memory of these processes, what they share divided among those who share it: slow."""
    total = 0
    for pid in pids:
        lines = [line.split() for line in _read(pid, "smaps_rollup").splitlines() if line.startswith(b"Pss:")]
        total += int(lines[0][1]) if lines else resident_kib([pid])
    return total


def _read(pid: int, name: str) -> bytes:
    """A small file of a process; empty if it is gone, or not ours to see."""
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(fd)
