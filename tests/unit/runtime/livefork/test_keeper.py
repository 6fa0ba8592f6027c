"""The keeper's channel: answers by key, errors by kind, and its end."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from hotbed.guest import kernel
from hotbed.runtime.livefork import keeper
from tests.unit.runtime.livefork.idling import forked, idle

Ask = Any


@pytest.fixture
def ask() -> Iterator[Ask]:
    """Ask a keeper in a process of its own."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        keeper.run(theirs)
    theirs.close()

    def call(message: dict[str, Any], process: int = 0) -> dict[str, Any]:
        fds = [kernel.pidfd_open(process)] if process else []
        socket.send_fds(ours, [json.dumps({**message, "key": 7}).encode()], fds)
        for fd in fds:
            os.close(fd)
        answer: dict[str, Any] = json.loads(ours.recv(1 << 16))
        assert answer.pop("key") == 7
        return answer

    with ours:
        yield call
    os.waitpid(pid, 0)


def test_a_snapshot_is_taken_while_it_is_stopped(ask: Ask) -> None:
    """Stop, take, let go; what it holds is told."""
    witness, end = forked()
    with idle(after="print('on')") as process:
        assert ask({"op": "witness", "template": 1}, witness)["size"] > 0
        assert ask({"op": "stop", "box": 5, "template": 1}, process.pid) == {}
        taken = ask({"op": "take", "box": 5, "template": 1, "snapshot": 9, "skip": True, "verify": False})
        assert ask({"op": "go", "box": 5}) == {}

        assert taken["size"] > 0
        assert taken["number"] == process.pid
        assert process.go_on() == "on\ndone\n"
    assert ask({"op": "forget", "snapshot": 9}) == ask({"op": "forget", "template": 1}) == {}
    os.close(end)
    os.waitpid(witness, 0)


def test_a_vessel_that_was_looked_at_goes_on_waiting(ask: Ask) -> None:
    """Nothing of it changes; what was seen is forgotten with its sandbox."""
    witness, end = forked()
    with idle(after="print('on')") as process:
        ask({"op": "witness", "template": 1}, witness)
        assert ask({"op": "look", "box": 5, "template": 1}, process.pid) == {}
        assert ask({"op": "forget", "box": 5}) == {}
        assert process.go_on() == "on\ndone\n"
    os.close(end)
    os.waitpid(witness, 0)


def test_what_cannot_be_done_is_an_answer(ask: Ask) -> None:
    """The keeper goes on."""
    with idle() as process:
        assert ask({"op": "restore", "box": 5, "snapshot": 1, "verify": False}, process.pid)["error"] == "lost"
        assert process.go_on() == "done\n"


def test_what_it_holds_dies_with_it() -> None:
    """No process stays half changed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        keeper.run(theirs)
    theirs.close()
    witness, end = forked()
    with idle() as process, ours:
        for message, target in (({"op": "witness"}, witness), ({"op": "stop", "box": 1}, process.pid)):
            handle = kernel.pidfd_open(target)
            socket.send_fds(ours, [json.dumps({**message, "template": 1, "key": 1}).encode()], [handle])
            os.close(handle)
            ours.recv(1 << 16)
        os.kill(pid, 9)
        os.waitpid(pid, 0)

        assert process.go_on() == ""
    os.close(end)
    os.waitpid(witness, 0)
