"""What the jobs of one sandbox share: the loop, the reaper, the way to the node, the limits, and who is running."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Set

from ..frames import Connection
from . import hunting
from .capture import Lingering
from .children import Alarm, Children, reap_all
from .hunting import Census, Claim, Marks
from .loop import Loop

NULL = 0  # the template leaves an agent's first three descriptors on /dev/null
_COUNTED = ("memory_events_fd", "pids_events_fd")
_READABLE = int(select.POLLIN)
_LEAVING_S = 0.1
_SEND_TIMEOUT = struct.pack("ll", 60, 0)  # struct timeval


class Claimant(Protocol):
    """A job as the box sees it."""

    claim: Claim

    def kill(self, cause: str) -> None:
        """End it, and let its report say why."""
        ...


class Counter:
    """A number in a cgroup's event file, counted from now on."""

    def __init__(self, fd: int, name: bytes, before: Optional[bytes] = None) -> None:
        """`before` is what the file held at an earlier moment, from which on it is counted then."""
        self._fd = fd
        self._name = name
        self._base = 0
        self._base = self.read() if before is None else self._in(before)

    def read(self) -> int:
        """How often it happened since this object was made."""
        try:
            return self._in(os.pread(self._fd, 4096, 0))
        except OSError:
            return 0

    def _in(self, text: bytes) -> int:
        words = text.split()
        try:
            return int(words[words.index(self._name) + 1]) - self._base
        except (ValueError, IndexError):
            return 0


class Box:
    """One sandbox, from inside."""

    def __init__(self, sock: socket.socket, ready_ns: int, config: Mapping[str, Any]) -> None:
        self.connection = Connection(sock)
        self.ready_ns = ready_ns
        self.config = config
        self.marks = Marks()
        self.spare_pids: Callable[[], Set[int]] = set  # of who waits here for work
        self.jobs: Dict[int, Claimant] = {}
        self.started = 0
        self.opened = False
        self._alarm: Optional[Alarm] = None
        self._before: Dict[str, bytes] = {}

    def open(self) -> None:
        """Get everything that is needed once something runs. Idempotent; after the first fork, if that can be."""
        if self.opened:
            return
        self.opened = True
        self.loop = Loop()
        self.children = Children(self.loop, self.listen())
        self.lingering = Lingering(self.loop)
        limits = self.config.get("limits") or {}
        self.memory_mib: Optional[int] = limits.get("memory_mib")
        self.oom_kills = self._counter("memory_events_fd", b"oom_kill")
        self.fork_refusals = self._counter("pids_events_fd", b"max")

    def listen(self) -> Alarm:
        """Hear of children that end, from now on."""
        if self._alarm is None:
            self.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _SEND_TIMEOUT)
            self._alarm = Alarm()
        return self._alarm

    def rest(self) -> bool:
        """Wait until the node wants something or nobody is left in here; whether nobody is, with nothing open.

        A program that has just ended is given a moment to be gone.
        """
        if self._alarm is None or self.opened:
            return not self.opened
        node, poll, until = self.connection.sock.fileno(), select.poll(), 0.0
        poll.register(node, _READABLE)
        poll.register(self._alarm.fd, _READABLE)
        while not until or time.monotonic() < until:
            ready = [fd for fd, _ in poll.poll(_LEAVING_S * 1000 if until else None)]
            if self._alarm.fd in ready:
                self._alarm.hush()
            if reap_all():
                return True
            if node in ready:
                poll.unregister(node)
                until = time.monotonic() + _LEAVING_S
        return False

    def be_ready(self) -> None:
        """Before something runs that may get by without all this: hear of its end, and note what is counted so far."""
        self.listen()
        for name in _COUNTED:
            fd = self.config.get(name)
            if fd is not None:
                self._before[name] = os.pread(fd, 4096, 0)

    def _counter(self, source: str, name: bytes) -> Optional[Counter]:
        fd = self.config.get(source)
        return None if fd is None else Counter(fd, name, self._before.get(source))

    def send(self, header: Dict[str, Any], body: bytes = b"", fds: Sequence[int] = ()) -> None:
        """One frame to the node."""
        self.connection.send(header, body, fds)

    def enter(self, job: Claimant) -> None:
        """A job has started."""
        self.started += 1
        self.jobs[id(job)] = job

    def leave(self, job: Claimant) -> None:
        """A job has ended."""
        self.jobs.pop(id(job), None)

    def members(self, job: Claimant) -> Set[int]:
        """The living processes of a job."""
        census = Census()
        census.take()
        return self._pick(job)(census)

    def kill(self, job: Claimant) -> None:
        """Kill every process of a job."""
        if self.started == 1 and os.getpid() == 1:
            # Nothing else ever ran here: the kernel does it in one step that no fork can slip through.
            hunting.send(-1, signal.SIGKILL)
        else:
            hunting.kill(self._pick(job))

    def _pick(self, job: Claimant) -> Callable[[Census], Set[int]]:
        others: List[Claim] = [other.claim for other in self.jobs.values() if other is not job]
        return lambda census: census.members(job.claim, others)

    def close(self) -> None:
        """Give back what a rehearsal took."""
        self.children.close()
        self.listen().close()
        self.loop.close()
        self.connection.close()
