"""What a fork keeps of its template, and how it ends. That it is shut in is for tests/escape."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from hotbed.guest import frames
from hotbed.guest.template import isolate, newborn

LIMITS = {"memory_mib": 64, "pids": 7, "disk_mib": 16, "files": 100, "open_files": 99}
SHAPE = isolate.shape({"limits": LIMITS, "hostname": "x"})


class FakeIsolator:
    """Needs no step, or one that fails."""

    upper = -1

    def __init__(self, *steps: isolate.Step) -> None:
        self._steps = steps
        self.asked: list[Any] = []

    def steps(self, shape: Any, network: int, cgroups: Any, ground: int = -1) -> isolate.Steps:
        """Those it was given; what it was asked is noted."""
        self.asked.append((shape, network, list(cgroups), ground))
        return [self._steps]


def in_child(attempt: Callable[[], object]) -> int:
    """The exit code of a child that runs this."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if attempt() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def made(isolator: Any, **config: Any) -> newborn.Newborn:
    """With /dev/null, as the template has it."""
    return newborn.Newborn(isolator, os.open("/dev/null", os.O_RDWR), config)


def order(**box: Any) -> newborn.Order:
    """For a sandbox with one group to join and one counter."""
    return (5, 3, 1, SHAPE, {"events": ["pids"], **box})


def test_a_fork_keeps_its_socket_and_its_counters_and_nothing_else() -> None:
    """What the template holds open is everybody's."""
    assert in_child(kept_descriptors) == 0


def kept_descriptors() -> bool:
    """Whether they are the right ones, the configuration says where, and its own settings are the template's."""
    _ours, theirs = socket.socketpair()
    group, counter = os.open("/dev/zero", os.O_RDONLY), os.open("/dev/full", os.O_RDONLY)
    isolator, to_be = FakeIsolator(), order()
    sock, ready_ns = made(isolator, cwd="/x", python=False).prepare(to_be, 9, [theirs.fileno(), group, counter])
    kept = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in range(5)}
    told = to_be[4]
    return (
        isolator.asked == [(SHAPE, 9, [group], -1)]
        and sock.fileno() == newborn.AGENT_SOCKET
        and set(kept.values()) - {kept[3]} == {"/dev/null", "/dev/full"}
        and kept[3].startswith("socket:")
        and kept[4] == "/dev/full"
        and len(os.listdir("/proc/self/fd")) == 6  # one more is that of the listing
        and (told["pids_events_fd"], told["cwd"], told["python"], ready_ns > 0) == (4, "/x", False, True)
    )


def become(isolator: Any, main: Callable[..., Any], shape: Any = SHAPE) -> tuple[int, bytes]:
    """The exit code of a fork, and what it said to the node."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        newborn.become(main, made(isolator), (5, 1, 0, shape, {"events": []}), 9, [theirs.fileno()])
    theirs.close()
    with ours:
        said = ours.recv(1 << 16)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def serve(sock: socket.socket, _ready_ns: int, _box: Any) -> NoReturn:
    """An agent that says a word and hears that nobody is there."""
    sock.sendall(b"hello")
    raise frames.Closed("gone")


def test_an_agent_serves_until_the_node_is_gone() -> None:
    """Which is no failure."""
    assert become(FakeIsolator(), serve) == (0, b"hello")


def test_a_fork_that_cannot_be_shut_in_says_so_and_runs_nothing() -> None:
    """Nothing ever runs with less."""
    code, said = become(FakeIsolator(("proc", isolate.fill, (b"/proc/nowhere", b""))), serve)
    decoder = frames.Decoder()
    decoder.feed(said)
    frame = decoder.next()

    assert code == newborn.ISOLATION_FAILED and frame is not None
    assert frame[0]["code"] == "isolation_failed" and frame[0]["message"].startswith("proc: ")


def test_a_rehearsal_ends_at_once() -> None:
    """It is there for what the template does around it."""
    assert become(FakeIsolator(), serve, None) == (0, b"")


def test_an_agent_that_fails_is_told_from_one_that_is_done() -> None:
    """By its exit code; what it raised is on the template's log."""
    assert become(FakeIsolator(), lambda *_: 1 / 0)[0] == newborn.AGENT_FAILED


def test_a_rehearsal_in_the_template_leaves_its_descriptors_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes through the same steps, but for those that nothing undoes."""
    before = os.listdir("/proc/self/fd")
    null = os.open("/dev/null", os.O_RDWR)
    mine = newborn.Newborn(FakeIsolator(), null, {})  # type: ignore[arg-type]  # a fake
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(newborn, "AGENT_SOCKET", ours.fileno())
        mine.rehearse((0, 1, 0, SHAPE, {"events": ["rehearsed"]}), 9, theirs.fileno())
        ours.send(b"still open")
        assert theirs.recv(16) == b"still open"
    os.close(null)

    assert os.listdir("/proc/self/fd") == before
