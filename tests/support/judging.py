"""Sealed judging without sandboxes: the judge and each candidate as plain forked processes.

For candidates that do no harm only: nothing is isolated here. What is tested is who believes whom, and the frames.
"""

from __future__ import annotations

import atexit
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hotbed.grading import protocol
from hotbed.grading.verdicts import GradeResult, infra_failure
from hotbed.guest import frames
from hotbed.guest.judging import calls, candidate, judge, sealing

_DIRECTORY = tempfile.mkdtemp(prefix="hotbed-judging-")
_OWNER = os.getpid()


def _remove_directory() -> None:
    """At the end of the process that made it, and not of a fork that runs its handlers."""
    if os.getpid() == _OWNER:
        shutil.rmtree(_DIRECTORY, ignore_errors=True)


atexit.register(_remove_directory)

Main = Callable[[socket.socket, dict[str, Any]], None]


def start(main: Main, channel: socket.socket, others: Sequence[socket.socket] = ()) -> int:
    """Run a guest program in a fork, in a directory of its own; its pid."""
    pid = os.fork()
    if pid:
        channel.close()
        return pid
    code = 70
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for other in others:
            other.close()
        os.closerange(3, channel.fileno())  # nothing of the test runner's: a sandbox has nothing of the node's
        os.closerange(channel.fileno() + 1, 1 << 20)
        os.chdir(tempfile.mkdtemp(dir=_DIRECTORY))
        quiet = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(quiet, fd)
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")
        main(channel, {})
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


@contextmanager
def asked(
    code: str, names: Sequence[str] = ("*",), *, wall_s: float = 5.0, live_operators: bool = False
) -> Iterator[sealing.JudgePeer]:
    """A judge's peer of a candidate that has loaded `code`."""
    ours, theirs = socket.socketpair()
    pid = start(candidate.main, theirs, [ours])
    assert ours.recv(1) == candidate.HERE
    header = {"op": "load", "code": len(code.encode()), "prelude": 0, "files": [], "module": "solution"}
    frames.send(ours, {**header, "names": list(names), "cpu_s": 5.0}, code.encode())
    channel = calls.Channel(ours, tick_s=sealing.TICK_S)
    peer = sealing.JudgePeer(channel, sealing.Patience(wall_s), live_operators=live_operators)
    try:
        peer.loaded()
        yield peer
    finally:
        ours.close()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def judge_group(
    spec: protocol.Sealed,
    codes: Sequence[str | Mapping[str, str]],
    *,
    seed: str = "0" * 64,
    candidate_main: Main = candidate.main,
    on_frame: Callable[[dict[str, Any]], None] = lambda header: None,
) -> list[GradeResult]:
    """The results of one group, as a node would form them."""
    ours, theirs = socket.socketpair()
    pids = [start(judge.main, theirs, [ours])]
    ends: list[socket.socket] = []
    for _ in codes:
        judges, candidates = socket.socketpair()
        pids.append(start(candidate_main, candidates, [ours, judges, *ends]))
        ends.append(judges)
    header, body = protocol.job_frame("job", spec, [protocol.candidate_of(code, spec) for code in codes], seed)
    frames.send(ours, header, body, [end.fileno() for end in ends])
    for end in ends:
        end.close()
    try:
        return _collect(ours, spec, pids, on_frame, len(codes))
    finally:
        ours.close()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _collect(
    ours: socket.socket, spec: protocol.Sealed, pids: list[int], on_frame: Callable[[dict[str, Any]], None], n: int
) -> list[GradeResult]:
    results = [infra_failure("no verdict")] * n
    node = frames.Connection(ours)
    deadline = time.monotonic() + protocol.deadline_s(spec, n)
    while True:
        ours.settimeout(max(0.01, deadline - time.monotonic()))
        header, _, _ = node.receive()
        on_frame(header)
        if header["op"] == "done":
            return results
        if header["op"] == "usage":
            node.send(protocol.usage_frame(header, 0.0))
            continue
        index, results[index] = protocol.read_verdict(header, spec, n)
        os.kill(pids[index + 1], signal.SIGKILL)


def judge_one(spec: protocol.Sealed, code: str | Mapping[str, str], **options: Any) -> GradeResult:
    """The result of one candidate."""
    return judge_group(spec, [code], **options)[0]
