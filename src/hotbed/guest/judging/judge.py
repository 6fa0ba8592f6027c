"""The judge: forms the verdict on a group of sibling candidates, in a sandbox where no candidate byte runs.

The node sends one frame per job, with a connected stream socket to each candidate's program:

    {"op":"judge","id":str,"total_s":float,"spec":bytes,"codes":[[bytes,[[path,bytes]...]]...]}     body: spec (JSON),
                                                                        then each candidate's code and files
and gets, in any order,
    {"op":"verdict","id","index","status","reason","checks":[[name,outcome,message]...],"passed","total","calls",
     "unsealed":[reason...],"tampered":str,"gone":bool,"seconds"}                   exactly one for each candidate
    {"op":"usage","id","index"}          answer {"op":"usage","id","index","waited_s":float}: how long that sandbox was
                                         runnable without a CPU since it was last asked for; 0 if that is not known
and at the end {"op":"done","id","clean":bool}, clean if another job may follow. The verdict on a candidate is also the
sign that its sandbox is not needed any more.
For checkers of program output there is {"op":"check"}, see `judge_outputs`.

Status: ok (every check passed), failed, candidate_error, timeout, spec_error; lost when a candidate's sandbox never
came to be, which no candidate can bring about. "gone" says whether its process was seen to end.

Test scripts are users' code, so they run in worker processes; this one only supervises and never runs a byte of them.
One worker takes the candidates in turn, which costs no fork per candidate. As soon as an answer is slow to come, the
candidates behind it get a worker of their own, so a candidate that hangs delays nobody. A worker that dies or does not
finish in time is the doing of the candidate it was at, unless none of that one's code had run yet: then the tests are
to blame. A candidate must not be able to choose that, so loading counts as much as an answer.
"""

from __future__ import annotations

import gc
import mmap
import os
import select
import signal
import socket
import time
from typing import Any, Dict, List, Optional

from .. import frames, kernel
from ..agent.forking import fork
from . import judge_outputs
from .candidate import share_cpu
from .judge_worker import UNASKED, Job, work
from .leftovers import Ground

GRACE_S = 5.0
RESEEDS = False  # random state is for the workers to renew; this process draws nothing


def main(channel: socket.socket, config: Dict[str, Any]) -> None:
    """Judge one job after another until the node closes its end. A job's `cpu` is as in `candidate.main`."""
    node = frames.Connection(channel)
    ground = None
    if os.getpid() == 1:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # what comes after this job is none of its tests' business
        ground = Ground()
    gc.freeze()
    try:
        while True:
            answer(node, ground)
    except frames.Closed:
        pass


def answer(node: frames.Connection, ground: Optional[Ground]) -> None:
    """Do the next job. Raises `Closed`."""
    header, body, fds = node.receive()
    if header.get("op") == "judge":
        every = os.sched_getaffinity(0)
        share_cpu(header)
        Supervisor(node, header, body, fds).run(ground)
        os.sched_setaffinity(0, every)
    elif header.get("op") == "check":
        judge_outputs.answer(node, header, body)


def warm() -> None:
    """For a template: judge something, so that forks find the way warm."""
    from . import rehearsal  # which needs this module

    rehearsal.run()


class _Work:
    """A worker process and the candidates it still has before it."""

    def __init__(self, pid: int, sock: socket.socket, indices: List[int]) -> None:
        self.pid = pid
        self.link = frames.Connection(sock)
        self.indices = indices
        self.since = time.monotonic()


class Supervisor:
    """One job."""

    def __init__(self, node: frames.Connection, header: Dict[str, Any], body: bytes, fds: List[int]) -> None:
        self._node = node
        self._id = header["id"]
        self._job = Job(header, body, fds)
        self._limit_s = header["total_s"] + GRACE_S
        self._answered = mmap.mmap(-1, max(1, len(fds)))
        self._workers: Dict[int, _Work] = {}

    def run(self, ground: Optional[Ground]) -> None:
        """See every candidate to its verdict."""
        self._fork(list(range(len(self._job.fds))))
        while self._workers:
            self._turn()
        clean = ground is not None and ground.is_untouched()
        self._node.send({"op": "done", "id": self._id, "clean": clean})

    def _fork(self, indices: List[int]) -> None:
        if not indices:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        pid = fork()
        if pid == 0:
            for sock in [ours, self._node.sock, *(each.link.sock for each in self._workers.values())]:
                sock.close()
            work(frames.Connection(theirs), self._job, self._answered, indices)
        theirs.close()
        self._workers[ours.fileno()] = _Work(pid, ours, indices)

    def _turn(self) -> None:
        """Wait for the next thing to happen, and deal with it."""
        deadline = min(each.since for each in self._workers.values()) + self._limit_s
        poll = select.poll()
        for fd in [self._node.fileno(), *self._workers]:
            poll.register(fd, select.POLLIN)
        ready = [fd for fd, _ in poll.poll(max(0.0, deadline - time.monotonic()) * 1000 + 1)]
        if self._node.fileno() in ready:
            self._from_node()
        for fd in ready:
            if fd in self._workers:
                self._from_worker(fd, self._workers[fd])
        for fd, worker in list(self._workers.items()):
            if time.monotonic() >= worker.since + self._limit_s:
                self._lost(fd, worker, "timeout", "the tests did not end in time with this candidate's answers")

    def _from_node(self) -> None:
        try:
            header, _, _ = self._node.receive()
        except frames.Closed:
            for worker in self._workers.values():
                os.kill(worker.pid, signal.SIGKILL)
            os._exit(0)
        for worker in self._workers.values():
            if header.get("op") == "usage" and worker.indices[:1] == [header.get("index")]:
                worker.link.send(header)

    def _from_worker(self, fd: int, worker: _Work) -> None:
        try:
            header, _, _ = worker.link.receive()
        except (frames.Closed, frames.FrameError, OSError):
            self._lost(fd, worker, "failed", "the tests' process died with this candidate's answers")
            return
        op = header["op"]
        if op == "verdict":
            self._verdict(worker, header)
        elif op == "slow":
            rest, worker.indices = worker.indices[1:], worker.indices[:1]
            self._fork(rest)
        elif op == "usage":
            self._node.send(dict(header, id=self._id))
        elif op == "spec_error":
            while worker.indices:
                self._say(worker, "spec_error", header["reason"])

    def _verdict(self, worker: _Work, header: Dict[str, Any]) -> None:
        self._job.forget(worker.indices.pop(0))
        worker.since = time.monotonic()
        self._node.send(dict(header, id=self._id))

    def _say(self, worker: _Work, status: str, reason: str) -> None:
        """A verdict that no worker could give."""
        blank = {"checks": [], "passed": 0, "total": 0, "calls": 0, "unsealed": [], "tampered": "", "seconds": 0.0}
        blank["gone"] = False
        self._verdict(worker, dict(blank, op="verdict", index=worker.indices[0], status=status, reason=reason))

    def _lost(self, fd: int, worker: _Work, status: str, reason: str) -> None:
        """A worker is gone or hangs: the candidate it was at is judged by that, the ones behind get another worker."""
        del self._workers[fd]
        try:
            os.kill(worker.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(worker.pid, 0)
        worker.link.close()
        if not worker.indices:
            return
        if self._answered[worker.indices[0]] == UNASKED:
            status, reason = "spec_error", "the tests' process ended before the candidate was asked anything"
        self._say(worker, status, reason)
        self._fork(worker.indices)
