"""Who is calling: from the number of a thread on the host to a process of one sandbox.

A process is named by its place in the tree of forks: the second child of the first process is `0.2`, whatever its
number is and whoever runs beside it. Streams belong to names, so processes that run at once do not take each other's
bytes, and a replay gives each the same ones. Threads share their process's streams: a task that moves between the
threads of a pool (Go, libuv) goes on with the same stream.

Forks are stopped calls. At a fork the supervisor knows the parent and the child's name, not the child: that is whoever
next turns up as a child of that parent; if none has by the parent's next fork, it is looked for. An orphan is given
the name that is missing if there is only one; else, and when a process's threads fork at once, the name is its
number's distance from the first process's, which is the same in a replay only if the order of forks was.

What was looked up is kept until the process ends (its pidfd becomes readable), because numbers are used again.
"""

from __future__ import annotations

import os
import select
from collections import Counter
from typing import NamedTuple

from hotbed.runtime.replay.streams import Stream, Streams
from hotbed.runtime.replay.watcher import Watching

_UNSEEN_LIMIT = 16


class Identity(NamedTuple):
    """What the kernel says about a thread's process: its number, its parent's, and its own inside the sandbox."""

    pid: int
    parent: int
    inside: int


class Process:
    """One process of a sandbox, and the streams that are its own."""

    __slots__ = ("forker", "forks", "name", "opened", "pid", "pidfd", "random", "threads", "unseen")

    def __init__(self, name: str, pid: int, pidfd: int, random: Stream) -> None:
        self.name = name
        self.pid = pid
        self.pidfd = pidfd
        self.random = random
        self.opened = 0
        self.forks = 0
        self.forker = 0  # the thread that forked last
        self.unseen: list[str] = []  # names of children that have not turned up
        self.threads: set[int] = {pid}


class Processes:
    """The processes of one pinned rollout."""

    def __init__(self, streams: Streams, watching: Watching) -> None:
        self._streams = streams
        self._watching = watching
        self._by_thread: dict[int, Process] = {}
        self._living: dict[int, Process] = {}  # by number
        self._orphans: list[str] = []
        self._first = 0
        self._strays: Counter[int] = Counter()

    def begin(self, tid: int, inside: int, name: str) -> None:
        """Meet a process that nobody here forked, by its only thread and its own number inside the sandbox."""
        self._first = self._first or inside
        self._meet(tid, name)

    def of(self, tid: int) -> Process:
        """The process of a thread. Raises `OSError` when it is gone."""
        process = self._by_thread.get(tid)
        if process is not None and (process.pid == tid or os.path.exists(f"/proc/{process.pid}/task/{tid}")):
            return process
        identity = identify(tid)
        process = self._living.get(identity.pid)
        if process is None:
            process = self._meet(identity.pid, self._name(identity))
        process.threads.add(tid)
        self._by_thread[tid] = process
        return process

    def forking(self, tid: int) -> None:
        """A thread is about to fork."""
        parent = self.of(tid)
        if parent.unseen:
            self._look_for(parent, tid)
        parent.forker = tid
        parent.forks += 1
        parent.unseen.append(f"{parent.name}.{parent.forks}")

    def close(self) -> None:
        """Forget everyone."""
        for process in list(self._living.values()):
            self._forget(process)

    def _name(self, identity: Identity) -> str:
        parent = self._living.get(identity.parent)
        if parent is None:
            self._collect_orphans()
        names = self._orphans if parent is None else parent.unseen
        if len(names) == 1:
            return names.pop()
        distance = identity.inside - self._first
        self._strays[distance] += 1
        return f"{distance}#{self._strays[distance]}"

    def _meet(self, pid: int, name: str) -> Process:
        pidfd = os.pidfd_open(pid)
        process = Process(name, pid, pidfd, self._streams.stream(f"process:{name}:random"))
        self._living[pid] = self._by_thread[pid] = process
        self._watching.watch(pidfd, lambda _events: self._gone(process))
        return process

    def _look_for(self, parent: Process, tid: int) -> None:
        """Find the children of the forks before. Who is missing has ended, or another thread is just making it."""
        unknown = sorted(pid for pid in children(parent) if pid not in self._living and is_running(pid))
        if len(unknown) == len(parent.unseen):
            for pid, name in zip(unknown, parent.unseen, strict=True):
                self._meet(pid, name)
        elif (parent.forker != tid or len(parent.unseen) > 1) and len(parent.unseen) < _UNSEEN_LIMIT:
            return
        parent.unseen.clear()

    def _collect_orphans(self) -> None:
        """Take the names of children whose parent has ended, though its end may not have been heard of yet."""
        poll = select.poll()
        parents = {process.pidfd: process for process in self._living.values() if process.unseen}
        for pidfd in parents:
            poll.register(pidfd, select.POLLIN)
        for pidfd, _ in poll.poll(0):
            self._orphans += parents[pidfd].unseen
            parents[pidfd].unseen.clear()

    def _gone(self, process: Process) -> None:
        self._orphans += process.unseen
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
        text = os.read(fd, 4096)
    finally:
        os.close(fd)
    inside = _field(text, b"\nNStgid:")
    return Identity(int(inside[0]), int(_field(text, b"\nPPid:")[0]), int(inside[-1]))


def children(parent: Process) -> list[int]:
    """The living children of all its threads."""
    found: list[int] = []
    for tid in os.listdir(f"/proc/{parent.pid}/task"):
        with open(f"/proc/{parent.pid}/task/{tid}/children", "rb") as file:
            found += map(int, file.read().split())
    return found


def is_running(pid: int) -> bool:
    """Whether a process can still ask for anything: a zombie waits to be forgotten."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return os.read(fd, 512).rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)


def _field(text: bytes, name: bytes) -> list[bytes]:
    start = text.index(name) + len(name)
    return text[start : text.index(b"\n", start)].split()
