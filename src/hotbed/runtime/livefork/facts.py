"""What the kernel says about a process, other than its memory: checked, carried over, or named as what cannot be."""

from __future__ import annotations

import os
import resource
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hotbed.runtime.livefork.tracee import Tracee

_SA_SIZE = 32  # struct kernel_sigaction: handler, flags, restorer, mask
_STACK_SIZE = 24  # stack_t
_TIMER_SIZE = 32  # struct itimerval
_TIMER_SIGNALS = (14, 26, 27)  # of ITIMER_REAL, _VIRTUAL, _PROF: SIGALRM, SIGVTALRM, SIGPROF
_SET_NAME = 15  # PR_SET_NAME
_MASK = (1 << 64) - 1
_NSIG = 64
_UNCATCHABLE = (9, 19)
_RLIMITS = 16
_RLIM = struct.Struct("QQ")
_NO_RIGHTS = "0" * 16


def status(pid: int) -> dict[str, str]:
    """/proc/pid/status, by name."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def descendants(pid: int) -> Iterator[int]:
    """Every process below this one."""
    queue = [pid]
    while queue:
        for task in _tasks(queue.pop()):
            children = [int(child) for child in _read(task / "children").split()]
            yield from children
            queue += children


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def page_faults(pid: int) -> int:
    """How many page faults it had that needed no disk."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def inside_number(about: dict[str, str]) -> int:
    """Its pid as its own sandbox numbers it."""
    return int(about["NSpid"].split()[-1])


def has_no_rights(about: dict[str, str]) -> bool:
    """Every capability set empty, no_new_privs set, filtered."""
    sets = (about[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"))
    return all(one == _NO_RIGHTS for one in sets) and about["NoNewPrivs"] == "1" and about["Seccomp"] == "2"


def obstacles(pid: int, about: dict[str, str], filters: int) -> list[str]:
    """Names of what runs or waits there and cannot be carried over. `filters`: what a newborn has."""
    found = []
    if about["Threads"] != "1":
        names = [_read(task / "comm").strip() for task in _tasks(pid) if task.name != str(pid)]
        found.append(f"threads: {len(names)} ({', '.join(sorted(set(names)))})")
    for other in descendants(int(about["PPid"])):
        if other != pid:
            found.append(f"child process {_name_of(other)}")
    if int(about["SigPnd"], 16) | int(about["ShdPnd"], 16):
        found.append("signals that have not been delivered")
    if _read(Path(f"/proc/{pid}/timers")).strip():
        found.append("timers (timer_create)")
    if int(about["Seccomp_filters"]) != filters:
        found.append("a seccomp filter of its own")
    return found


def _name_of(pid: int) -> str:
    try:
        about = status(pid)
    except OSError:
        return f"{pid}"
    dead = " (defunct)" if about["State"].startswith("Z") else ""
    return f"{inside_number(about)} {about['Name']}{dead}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a process is set up, besides memory and files."""

    break_at: int
    actions: tuple[tuple[int, bytes], ...]
    ignored: int
    caught: int
    alternate_stack: bytes
    limits: tuple[bytes, ...]
    umask: int
    cwd: str
    name: bytes
    nice: int
    cpus: frozenset[int]


def signals_of(about: dict[str, str]) -> tuple[int, int]:
    """The signals that are caught and ignored, as bits."""
    return int(about["SigCgt"], 16), int(about["SigIgn"], 16)


def manner_of(tracee: Tracee, about: dict[str, str]) -> Manner:
    """Ask a stopped process how it is set up. Raises `OSError`."""
    caught, ignored = signals_of(about)
    numbers = [number for number in range(1, _NSIG + 1) if caught >> (number - 1) & 1]
    actions = [(number, _asked(tracee, "rt_sigaction", number, 0, after=(8,), size=_SA_SIZE)) for number in numbers]
    return Manner(
        break_at=tracee.call("brk", 0),
        actions=tuple(actions),
        ignored=ignored,
        caught=caught,
        alternate_stack=_asked(tracee, "sigaltstack", 0, size=_STACK_SIZE),
        **_seen_from_outside(tracee.pid, about),
    )


def manner_like(known: Manner, pid: int, about: dict[str, str]) -> Manner:
    """How a process is set up that would answer as a known one did: what can be seen without asking it is looked at."""
    return replace(known, **_seen_from_outside(pid, about))


def _seen_from_outside(pid: int, about: dict[str, str]) -> dict[str, Any]:
    return {
        "limits": _limits(pid),
        "umask": int(about["Umask"], 8),
        "cwd": "/" if lost_folder(pid) else os.readlink(f"/proc/{pid}/cwd"),
        "name": Path(f"/proc/{pid}/comm").read_bytes().rstrip(b"\n"),
        "nice": os.getpriority(os.PRIO_PROCESS, pid),
        "cpus": frozenset(os.sched_getaffinity(pid)),
    }


def interval_timers(tracee: Tracee, about: dict[str, str]) -> list[str]:
    """Names of the setitimer(2) timers that are on: those whose signal is handled; any other is about to kill."""
    handled = int(about["SigCgt"], 16) | int(about["SigIgn"], 16)
    found = []
    for which, number in enumerate(_TIMER_SIGNALS):
        if handled >> (number - 1) & 1:
            value = _asked(tracee, "getitimer", which, size=_TIMER_SIZE)
            if value != bytes(_TIMER_SIZE):
                found.append(f"an interval timer (setitimer {which})")
    return found


def lost_folder(pid: int) -> list[str]:
    """A name if the working folder has been removed."""
    return ["a working folder that has been deleted"] if os.readlink(f"/proc/{pid}/cwd").endswith(" (deleted)") else []


def _asked(tracee: Tracee, name: str, *arguments: int, after: tuple[int, ...] = (), size: int) -> bytes:
    """What a system call writes to the address that is its argument after these."""

    def ask(address: int) -> None:
        tracee.call(name, *arguments, address, *after)

    return tracee.with_scratch(bytes(size), ask, size=size)


def _told(tracee: Tracee, name: str, *arguments: int, data: bytes, after: tuple[int, ...] = ()) -> None:
    """Make a system call that reads data from the address that is its argument after these."""

    def tell(address: int) -> None:
        tracee.call(name, *arguments, address, *after)

    tracee.with_scratch(data, tell, size=len(data))


def _limits(pid: int) -> tuple[bytes, ...]:
    found = (resource.prlimit(pid, kind) for kind in range(_RLIMITS))
    return tuple(_RLIM.pack(*(value & _MASK for value in pair)) for pair in found)


def assume(tracee: Tracee, have: Manner, want: Manner) -> None:
    """Make a stopped process be set up likewise. The program break is not touched here."""
    for number, action in _new_actions(have, want):
        _told(tracee, "rt_sigaction", number, data=action, after=(0, 8))
    for kind, (now, then) in enumerate(zip(have.limits, want.limits, strict=True)):
        if now != then:
            _told(tracee, "prlimit64", 0, kind, data=then, after=(0,))
    texts = (
        ("sigaltstack", (), have.alternate_stack, want.alternate_stack),
        ("chdir", (), os.fsencode(have.cwd) + b"\0", os.fsencode(want.cwd) + b"\0"),
        ("prctl", (_SET_NAME,), have.name + b"\0", want.name + b"\0"),
    )
    for name, arguments, before, after in texts:
        if before != after:
            _told(tracee, name, *arguments, data=after)
    _assume_numbers(tracee, have, want)


def _assume_numbers(tracee: Tracee, have: Manner, want: Manner) -> None:
    if want.umask != have.umask:
        tracee.call("umask", want.umask)
    if want.nice > have.nice:
        tracee.call("setpriority", 0, 0, want.nice)
    if want.cpus != have.cpus:
        os.sched_setaffinity(tracee.pid, want.cpus)


def _new_actions(have: Manner, want: Manner) -> Iterator[tuple[int, bytes]]:
    """The signals to be set otherwise, and to what."""
    before, after = dict(have.actions), dict(want.actions)
    for number in range(1, _NSIG + 1):
        bit = 1 << (number - 1)
        if number in _UNCATCHABLE:
            continue
        if number in after:
            if after[number] != before.get(number):
                yield number, after[number]
        elif want.ignored & bit != have.ignored & bit or have.caught & bit:
            yield number, struct.pack("QQQQ", 1 if want.ignored & bit else 0, 0, 0, 0)
