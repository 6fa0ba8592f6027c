"""The supervisor process: what its death means, and that a rollout's trouble is that rollout's."""

from __future__ import annotations

import errno
import json
import os

import pytest

from hotbed.guest import kernel
from hotbed.guest.agent.pinning import NotPinned, Pinning
from tests.unit.runtime.replay.supervised import Supervised


def test_when_it_dies_a_pinned_process_gets_an_error_and_no_other_bytes(node: Supervised) -> None:
    """ENOSYS is where a program falls back to something unpinned, so the node must not believe what follows."""
    _, channel = node.pin()
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        Pinning().enter(channel, "rng")
        os.write(sink, b"!")
        try:
            while True:
                os.getrandom(8)
        except OSError as error:
            os._exit(error.errno or 0)
    channel.close()
    os.read(source, 1)
    node.kill()

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == errno.ENOSYS


@pytest.mark.parametrize("when", ["before", "during"])
def test_without_it_nothing_begins(node: Supervised, when: str) -> None:
    """A process that cannot be pinned must not run: `enter` raises."""
    _, channel = node.pin()
    if when == "before":
        node.kill()
    pid = os.fork()
    if pid == 0:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        if when == "during":
            node.kill_from_child()
        try:
            Pinning().enter(channel, "rng")
        except NotPinned:
            os._exit(7)
        os._exit(0)
    channel.close()

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_a_report_about_nobody_says_so(node: Supervised) -> None:
    """A node that asks about a rollout of an earlier supervisor must not wait."""
    node.control.send(json.dumps({"op": "report", "id": 99}).encode())

    assert json.loads(node.control.recv(4096)) == {"id": 99, "state": "unknown"}


def test_a_dropped_pin_is_served_to_its_end(node: Supervised) -> None:
    """A background process of an exec that is over still draws."""
    pin_id, channel = node.pin()
    go, start = os.pipe()
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        Pinning().enter(channel, "rng")
        os.read(go, 1)
        os.write(sink, os.urandom(4))
        os._exit(0)
    channel.close()
    while node.ask(pin_id)["state"] != "verified":
        pass
    node.control.send(json.dumps({"op": "drop", "id": pin_id}).encode())
    os.write(start, b"!")

    assert len(os.read(source, 4)) == 4
    os.waitpid(pid, 0)
