"""Who is calling: from the number of a thread on the host to a process of one sandbox.

A process is named by its place in the tree of forks: the second child of the first process is `0.2`, whatever its
number is and whoever runs beside it. Streams belong to names, so processes that run at once do not take each other's
bytes, and a replay gives each the same ones. Threads share their process's streams: a task that moves between the
threads of a pool (Go, libuv) goes on with the same stream.

A child is met at its own first call: the C library's `fork` makes one in the child (set_robust_list), and an exec
makes others. Brothers and sisters that are there and were not met yet are named then too, in the order of their
births. The fork itself is not stopped: a signal that comes before the supervisor has seen a stopped call makes it fail
with EINTR, which no program expects of a fork.

Who is met after its parent has ended is taken for a child of the last one that ended before it was born. What was
looked up is kept until the process ends (its pidfd becomes readable), because numbers are used again.
"""

from __future__ import annotations

import os
import select
from collections import deque
from typing import NamedTuple

from hotbed.runtime.replay.streams import Stream, Streams
from hotbed.runtime.replay.watcher import Watching

_READ = 1 << 12
_LINKS_OF_ONE_THREAD = 3  # of a process's folder of threads: two, and one for each
_ENDED = 64  # so many ended processes may still turn out to be somebody's parent


class Identity(NamedTuple):
    """What the kernel says about a thread's process: its number, its parent's, and its own inside the sandbox."""

    pid: int
    parent: int
    inside: int


class Process:
    """One process of a sandbox, and the streams that are its own."""

    __slots__ = ("forks", "inside", "name", "opened", "pid", "pidfd", "random", "threads")

    def __init__(self, name: str, pid: int, inside: int, pidfd: int, random: Stream) -> None:
        self.name = name
        self.pid = pid
        self.inside = inside
        self.pidfd = pidfd
        self.random = random
        self.opened = 0
        self.forks = 0
        self.threads: set[int] = {pid}

    def next_child(self) -> str:
        """The name of one more child."""
        self.forks += 1
        return f"{self.name}.{self.forks}"


class Processes:
    """The processes of one pinned rollout."""

    def __init__(self, streams: Streams, watching: Watching) -> None:
        self._streams = streams
        self._watching = watching
        self._by_thread: dict[int, Process] = {}
        self._living: dict[int, Process] = {}  # by number
        self._ended: deque[Process] = deque(maxlen=_ENDED)

    def begin(self, tid: int, inside: int, name: str) -> None:
        """Meet a process that nobody here forked, by its only thread and its own number inside the sandbox."""
        self._meet(tid, inside, name)

    def of(self, tid: int) -> Process:
        """The process of a thread. Raises `OSError` when it is gone."""
        process = self._by_thread.get(tid)
        if process is not None and (process.pid == tid or os.path.exists(f"/proc/{process.pid}/task/{tid}")):
            return process
        identity = identify(tid)
        process = self._living.get(identity.pid) or self._find(identity)
        process.threads.add(tid)
        self._by_thread[tid] = process
        return process

    def close(self) -> None:
        """Forget everyone."""
        for process in list(self._living.values()):
            self._forget(process)

    def _find(self, found: Identity) -> Process:
        parent = self._living.get(found.parent)
        if parent is None:
            return self._meet(found.pid, found.inside, self._parent_of_orphan(found).next_child())
        new = (pid for pid in children(parent) if pid not in self._living)
        for pid in sorted(pid for pid in new if pid == found.pid or is_running(pid)):
            inside = found.inside if pid == found.pid else identify(pid).inside
            self._meet(pid, inside, parent.next_child())
        return self._living[found.pid]

    def _parent_of_orphan(self, orphan: Identity) -> Process:
        """The last that ended before its birth; its end may not have been heard of yet."""
        poll = select.poll()
        by_pidfd = {process.pidfd: process for process in self._living.values()}
        for pidfd in by_pidfd:
            poll.register(pidfd, select.POLLIN)
        ended = [*self._ended, *(by_pidfd[pidfd] for pidfd, _ in poll.poll(0))]
        older = [process for process in ended if process.inside < orphan.inside]
        return max(older or ended or self._living.values(), key=lambda process: process.inside)

    def _meet(self, pid: int, inside: int, name: str) -> Process:
        pidfd = os.pidfd_open(pid)
        process = Process(name, pid, inside, pidfd, self._streams.stream(f"process:{name}:random"))
        self._living[pid] = self._by_thread[pid] = process
        self._watching.watch(pidfd, lambda _events: self._gone(process))
        return process

    def _gone(self, process: Process) -> None:
        self._ended.append(process)
        self._forget(process)

    def _forget(self, process: Process) -> None:
        self._watching.release(process.pidfd)
        del self._living[process.pid]
        for tid in process.threads:
            if self._by_thread.get(tid) is process:
                del self._by_thread[tid]


def identify(tid: int) -> Identity:
    """A thread's process. Raises `OSError` when it is gone."""
    fd = os.open(f"/proc/{tid}/status", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(fd, _READ)
    finally:
        os.close(fd)
    inside = _field(text, b"\nNStgid:")
    return Identity(int(inside[0]), int(_field(text, b"\nPPid:")[0]), int(inside[-1]))


def children(parent: Process) -> list[int]:
    """The children of all its threads."""
    folder = f"/proc/{parent.pid}/task"
    alone = os.stat(folder).st_nlink == _LINKS_OF_ONE_THREAD
    found: list[int] = []
    for tid in (parent.pid,) if alone else os.listdir(folder):
        found += map(int, _contents(f"{folder}/{tid}/children").split())
    return found


def is_running(pid: int) -> bool:
    """Whether a process can still ask for anything: a zombie waits to be forgotten."""
    try:
        return _contents(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _contents(path: str) -> bytes:
    """A file of /proc, whole: what has several lines is read a page at a time."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(fd, _READ)
        while more := os.read(fd, _READ):
            text += more
        return text
    finally:
        os.close(fd)


def _field(text: bytes, name: bytes) -> list[bytes]:
    start = text.index(name) + len(name)
    return text[start : text.index(b"\n", start)].split()
