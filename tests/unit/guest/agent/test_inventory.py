"""What is in a sandbox besides files, and everybody held still."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator

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
