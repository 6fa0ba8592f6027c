"""What is seen of what a job leaves."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hotbed.guest.judging import leftovers
from hotbed.guest.judging.leftovers import Ground


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this process were."""
    monkeypatch.setattr(leftovers, "is_alone", lambda: True)


def test_an_untouched_sandbox_is_as_before(monkeypatch: pytest.MonkeyPatch, alone: None) -> None:
    """And whatever is written, sent or made in it shows."""
    seen = [(1, 2, b"shm")] * 3 + [(1, 1, b"shm")]
    monkeypatch.setattr(leftovers, "look", lambda: seen.pop(0))
    ground = Ground()

    assert ground.is_untouched() and ground.is_untouched()
    assert not ground.is_untouched()


def test_somebody_else_shows() -> None:
    """Here there are others, for this is no sandbox."""
    assert not leftovers.is_alone()


def test_many_prints_show(monkeypatch: pytest.MonkeyPatch, alone: None) -> None:
    """They take the memory of the sandbox."""
    monkeypatch.setattr(leftovers, "look", lambda: ())
    monkeypatch.setattr(leftovers, "_MOST_PRINTED", -1)

    assert not Ground().is_untouched()


def test_a_look_sees_traffic(alone: None) -> None:
    """Whoever talked over the loopback may have left its ports busy."""
    code = (
        "import os, socket\n"
        "from hotbed.guest.judging.leftovers import look\n"
        "before = look()\n"
        "sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "sock.bind(('127.0.0.1', 0))\n"
        "sock.sendto(b'x', sock.getsockname())\n"
        "assert look() != before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_a_kernel_without_ipc_has_none_to_see() -> None:
    """The files are not there."""
    assert leftovers._read("/proc/no/such/file") == b""
