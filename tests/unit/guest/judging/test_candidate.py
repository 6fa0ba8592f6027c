"""The candidate program: one process, or a fresh one per session."""

from __future__ import annotations

import os
import socket
from typing import Any

from hotbed.guest import frames
from hotbed.guest.judging import calls, candidate, sealing
from tests.support.judging import start

CODE = b"""
import os
seen = []
def f(x):
    seen.append(x)
    if x < 0: os._exit(7)
    return len(seen)
"""
HEADER = {"code": len(CODE), "prelude": 0, "files": [], "module": "solution", "names": ["f"], "cpu_s": 5.0}


class Host:
    """A judge's view of one candidate program."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.pid = start(candidate.main, theirs, [ours])
        assert ours.recv(1) == candidate.HERE
        self.control = frames.Connection(ours)

    def ask(self, header: dict[str, Any], body: bytes = b"", fds: tuple[int, ...] = ()) -> dict[str, Any]:
        self.control.send(header, body, fds)
        return self.control.receive()[0]

    def session(self) -> sealing.JudgePeer:
        ours, theirs = socket.socketpair()
        assert self.ask({"op": "session"}, fds=(theirs.fileno(),)) == {"op": "session"}
        theirs.close()
        peer = sealing.JudgePeer(calls.Channel(ours, tick_s=0.05), sealing.Patience(5.0))
        peer.loaded()
        return peer

    def close(self) -> None:
        self.control.close()
        os.waitpid(self.pid, 0)


def test_sessions_share_no_state_and_say_how_they_ended() -> None:
    """Each is forked before a byte of the candidate has run."""
    host = Host()
    assert host.ask({"op": "prepare", **HEADER}, CODE) == {"op": "prepared"}
    for _ in range(2):
        peer = host.session()
        assert [peer.question("run", "f", (1,)) for _ in range(2)] == [1, 2]
        peer.channel.sock.close()
    peer = host.session()
    try:
        peer.question("run", "f", (-1,))
    except sealing.Over:
        pass
    assert host.ask({"op": "ended"}) == {"op": "ended", "signal": None, "exit_code": 7}
    peer.channel.sock.close()
    host.close()


def test_it_shares_a_cpu_where_there_is_one() -> None:
    """A CPU that is not there is no reason not to run."""
    before = os.sched_getaffinity(0)
    try:
        candidate.share_cpu({"cpu": 100_000})
        assert os.sched_getaffinity(0) == before
        candidate.share_cpu({"cpu": min(before)})
        assert os.sched_getaffinity(0) == {min(before)}
    finally:
        os.sched_setaffinity(0, before)


def test_it_ends_with_its_judge() -> None:
    """Nothing waits for ever."""
    host = Host()
    host.close()
