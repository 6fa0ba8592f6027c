"""A command is pinned from its first instruction on, and the agent that started it is not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from hotbed.guest import kernel
from hotbed.guest.agent import pinned_spawn
from hotbed.guest.agent.pinning import NotPinned, Pinning
from tests.unit.runtime.replay.supervised import SEED, supervised

DRAW = ("/bin/sh", "-c", "od -An -tx1 -N8 /dev/urandom")


def started(channel: socket.socket, *argvs: Sequence[str], level: str = "rng") -> list[bytes]:
    """What commands print that a process without other threads starts, and then what it draws itself."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            null = os.open("/dev/null", os.O_RDWR)
            for argv in argvs:
                starter = pinned_spawn.begin(Pinning(), channel.fileno(), level)
                child = starter.start(argv, os.environ, (null, sink, null))
                os.waitpid(child, 0)
            os.write(sink, f"{len(os.listdir('/proc/self/task'))} {os.urandom(8).hex()}\n".encode())
            code = 0
        finally:
            os._exit(code)
    channel.close()
    os.close(sink)
    with open(source, "rb") as file:
        lines = file.read().splitlines()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return lines


def test_the_command_is_pinned_and_its_starter_is_not() -> None:
    """The filter is the thread's and what it started; the agent's own randomness stays real."""
    with supervised() as node:

        def run(seed: bytes = SEED) -> tuple[bytes, bytes]:
            pin_id, channel = node.pin(seed)
            command, starter = started(channel, DRAW)
            assert node.final(pin_id)["state"] == "verified"
            return command, starter

        first, again, other = run(), run(), run(bytes(32))

    assert first[0] == again[0] != other[0]
    assert first[1] != again[1]
    assert first[1].startswith(b"1 "), "a process that forks later has one thread"


def test_commands_in_turn_each_have_streams_of_their_own() -> None:
    """They share a channel; each brings a filter."""
    with supervised() as node:
        pin_id, channel = node.pin(roots=2)
        one, two, _ = started(channel, DRAW, DRAW)
        report = node.final(pin_id)

    assert one != two
    assert report["state"] == "verified"


def test_a_command_that_cannot_be_started_raises_as_an_unpinned_one_does() -> None:
    """The caller tells it as a shell would."""
    program = f"""
import os, sys
sys.path[:0] = {sys.path!r}
from hotbed.guest import kernel
from hotbed.guest.agent import pinned_spawn
from hotbed.guest.agent.pinning import Pinning
from tests.unit.runtime.replay.supervised import supervised
with supervised() as node:
    _, channel = node.pin()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    try:
        pinned_spawn.begin(Pinning(), channel.fileno(), "rng").start(["no-such-program"], dict(PATH="/usr/bin"), ())
    except FileNotFoundError:
        print("refused")
"""
    assert subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE).stdout == b"refused\n"


def test_what_cannot_be_pinned_is_not_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing runs unpinned and unnoticed."""
    pins = Pinning()
    monkeypatch.setattr(pinned_spawn, "_THREADS", str(tmp_path))  # an agent has one; the test runner may have more
    monkeypatch.setattr(kernel, "SUPPORTED", False)
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, two, pytest.raises(NotPinned):
        pinned_spawn.begin(pins, one.fileno(), "rng").start(DRAW, os.environ, ())


def test_a_number_is_spent() -> None:
    """By a process that could not become anything."""
    before = os.fork() or os._exit(0)
    os.waitpid(before, 0)
    pinned_spawn.spend_a_number(os.environ)
    after = os.fork() or os._exit(0)
    os.waitpid(after, 0)

    most = int(Path("/proc/sys/kernel/pid_max").read_text())  # after which they begin anew
    assert (after - before) % most >= 2


def test_level_full_leaves_the_starter_s_clock_alone() -> None:
    """Only the command's is virtual: the agent has deadlines to keep."""
    with supervised() as node:
        _, channel = node.pin(level="full")
        (command, _) = started(channel, ("/bin/date", "+%Y-%m-%d"), level="full")

    assert command == b"2026-01-01"


def test_a_starter_whose_seed_may_still_come_is_let_go_when_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who could not wait for its end asks again."""
    monkeypatch.setattr(pinned_spawn, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(pinned_spawn, "_wait_alone", lambda: None)  # the test runner may have more threads
    never_seeded = threading.Event()
    starter = pinned_spawn.Starter(lambda: b"" if never_seeded.wait(30) else b"late")
    for _ in range(2):
        with pytest.raises(NotPinned, match="still waits"):
            starter.let_go()
    never_seeded.set()
    monkeypatch.setattr(pinned_spawn, "_PATIENCE_S", 30.0)

    starter.let_go()
