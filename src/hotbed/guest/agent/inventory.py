"""What is in a sandbox besides its files, and holding it still: for who copies it, or lets it rest.

Stopping is the fallback where the node has no cgroup to freeze: SIGSTOP to everybody, which the kernel sends to all at
once, so no fork can slip through; then a look until each thread of each of them has stopped. Who was stopped already
stays so. A thread in vfork cannot stop before its child has executed something (vfork(2)), and the child is stopped:
such a thread is at rest, for what it does next is to stop. Another that the kernel does not let stop, one that writes
to a disk for instance, is not.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Dict, Iterable, List, Optional, Set

from . import processes
from .request import Refused

_LISTED = 32
_TCP_LISTENING = "0A"  # include/net/tcp_states.h
_IPC = ("shm", "msg", "sem")
_STOP_S = 5.0
_AT_REST = ("T", "t", "Z", "X", "x")
_UNTIL_DONE = "D"  # what it waits for, it waits for whatever signals come
_MAKES_PROCESSES = (b"56", b"58", b"435")  # clone, vfork, clone3: with a signal pending, none makes one any more


class Stillness:
    """Who was stopped by us, while somebody is."""

    def __init__(self) -> None:
        self._already: Optional[Set[int]] = None

    def begin(self) -> None:
        """Stop everybody but the agent. Raises `Refused` if somebody does not stop."""
        if self._already is not None:
            return
        self._already = {pid for pid in _others() if _state(pid) == "T"}
        if os.getpid() == 1:
            _send_all(signal.SIGSTOP)
        else:
            _send_each(_others(), signal.SIGSTOP)
        deadline = time.monotonic() + _STOP_S
        while not all(map(_is_at_rest, _others())):
            if time.monotonic() > deadline:
                self.end()
                raise Refused("busy", "a process did not stop in time")
            time.sleep(0.001)

    def end(self) -> None:
        """Let them go on."""
        already, self._already = self._already, None
        if already is not None:
            _send_each(_others() - already, signal.SIGCONT)


def take(own: Set[int]) -> Dict[str, Any]:
    """Running processes by name, but for those of our own; ports that somebody listens on; System V objects."""
    names = sorted(filter(None, (_name(pid) for pid in _others() - own)))
    return {"processes": names[:_LISTED], "count": len(names), "ports": _ports()[:_LISTED], "ipc": ipc_objects()}


def ipc_objects() -> List[str]:
    """The kinds of System V objects in this sandbox, which are neither files nor anybody's memory."""
    found = []
    for kind in _IPC:
        try:
            with open("/proc/sysvipc/" + kind) as file:
                if len(file.readlines()) > 1:  # the first line names the columns
                    found.append(kind)
        except OSError:
            continue
    return found


def _others() -> Set[int]:
    return set(processes.living())


def _is_at_rest(pid: int) -> bool:
    """Whether no thread of a process that was sent SIGSTOP does anything before it is sent SIGCONT."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return True  # it is gone
    return all(_thread_is_at_rest(f"{pid}/task/{thread}") for thread in threads)


def _thread_is_at_rest(thread: str) -> bool:
    state = _state(thread)
    return state in _AT_REST or (state == _UNTIL_DONE and is_for_a_child(_read(thread, "syscall")))


def is_for_a_child(line: bytes) -> bool:
    """Whether a thread that waits, waits in a system call that makes a process, as its /proc/PID/syscall says."""
    return line.split(b" ", 1)[0] in _MAKES_PROCESSES


def _state(process: object) -> str:
    return _read(process, "stat").rpartition(b") ")[2][:1].decode() or "X"


def _read(process: object, name: str) -> bytes:
    try:
        with open(f"/proc/{process}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _ports() -> List[int]:
    found: Set[int] = set()
    for table in ("tcp", "tcp6"):
        try:
            with open("/proc/net/" + table) as file:
                lines = [line.split() for line in file.readlines()[1:]]
        except OSError:
            continue
        found.update(int(line[1].rpartition(":")[2], 16) for line in lines if line[3] == _TCP_LISTENING)
    return sorted(found)


def _send_all(number: int) -> None:
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        pass  # nobody is there


def _send_each(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
