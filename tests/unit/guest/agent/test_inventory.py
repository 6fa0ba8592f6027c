"""What is in a sandbox besides files, and everybody held still."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotbed.guest.agent import inventory, processes


@pytest.fixture
def sleeper(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A child, and nobody else to be seen."""
    child = subprocess.Popen(["sleep", "100"])
    while inventory._name(child.pid) != "sleep":  # which is a moment after its exec
        pass
    monkeypatch.setattr(processes, "living", lambda: [child.pid])
    yield child
    child.kill()
    child.wait()


def test_processes_are_named_and_our_own_are_not(sleeper: subprocess.Popen[bytes]) -> None:
    """A fork has none of them, and its maker wants to know."""
    assert inventory.take(set())["processes"] == ["sleep"]
    assert inventory.take({sleeper.pid})["count"] == 0


def test_listening_ports_are_told() -> None:
    """Nobody answers on them in a fork."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert server.getsockname()[1] in inventory._ports()


def test_who_is_stopped_stays_so_and_who_was_stays_stopped(sleeper: subprocess.Popen[bytes]) -> None:
    """A program that stopped its child does not find it running."""
    still = inventory.Stillness()
    still.begin()
    still.begin()
    assert inventory._state(sleeper.pid) == "T"
    still.end()
    still.end()
    assert inventory._state(sleeper.pid) != "T"

    os.kill(sleeper.pid, 19)
    while inventory._state(sleeper.pid) != "T":
        pass
    still.begin()
    still.end()

    assert inventory._state(sleeper.pid) == "T"


def test_who_waits_for_a_stopped_child_to_execute_is_at_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell cannot be stopped in the vfork that starts a command; its child is, so neither does anything."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    child = subprocess.Popen([sys.executable, "-c", _SPAWNS_BEHIND_A_GATE, gate])
    family = [child.pid]
    while len(family) < 2:
        family = [child.pid, *processes.below(processes.table(), child.pid)]
    while inventory._state(child.pid) != "D":
        pass
    monkeypatch.setattr(processes, "living", lambda: family)
    still = inventory.Stillness()

    still.begin()

    assert [inventory._state(pid) for pid in family] == ["D", "T"]
    still.end()
    gate.write_bytes(b"")
    assert child.wait(60) == 0


_SPAWNS_BEHIND_A_GATE = """
import os, sys
gate = (os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)  # which the child does before it executes, in vfork
os.waitpid(os.posix_spawn("/bin/true", ["true"], {}, file_actions=[gate]), 0)
"""


def test_a_thread_that_has_not_stopped_is_not_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thread has stopped before the others: one may be in the middle of writing a file."""
    states = {"1/task/1": b"1 (a) T 0", "1/task/2": b"2 (a) D 0"}
    waits = {"1/task/2": b"1 0x1 0x7ffd 0x400"}  # in write
    monkeypatch.setattr(os, "listdir", lambda path: ["1", "2"])
    monkeypatch.setattr(inventory, "_read", lambda process, name: (states if name == "stat" else waits)[process])

    assert not inventory._is_at_rest(1)

    waits["1/task/2"] = b"58 0x0 0x0 0x0"  # in vfork
    assert inventory._is_at_rest(1)
