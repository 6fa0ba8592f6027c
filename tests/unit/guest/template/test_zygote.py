"""The template process: what it loads and how it reports. The whole of it is exercised by tests/conformance."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from hotbed.guest import forkhooks, kernel
from hotbed.guest.template import zygote


@pytest.fixture
def own_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The interpreter as a template's is at its start: isolated, without site, our directory first."""
    monkeypatch.setattr(sys, "path", ["/.hotbed/lib", "/usr/lib/python3"])
    monkeypatch.setattr(sys, "argv", ["-c"])
    yield


def test_load_imports_agent_programs_and_preloads(own_path: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says what it preloaded."""
    monkeypatch.setattr(forkhooks, "hold", lambda: None)
    monkeypatch.setattr(sys, "path", ["/.hotbed/lib", *sys.path])

    agent, modules = zygote.load({"programs": ["candidate"], "packages": False, "preload": ["json", "decimal"]})

    assert modules == ["decimal", "json"] and callable(agent.main)
    assert "hotbed.guest.judging.candidate" in sys.modules and "decimal" in sys.modules


def test_preload_that_starts_threads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork has one thread: the others' work and locks would be lost."""
    for name in ("mount", "empty_bounding_set", "prctl", "trim_heap"):
        monkeypatch.setattr(kernel, name, lambda *_: pytest.fail("it went on"))
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="threads"):
            zygote.settle()
    finally:
        over.set()
        thread.join()


def test_a_fork_that_cannot_be_watched_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The template is short of descriptors: nobody would hear of its end, or reap it."""
    pids: list[int] = []
    said: list[dict[str, Any]] = []
    closed: list[bool] = []

    def fork(*_: object) -> int:
        pids.append(os.fork())
        if pids[0] == 0:
            signal.alarm(5)
            signal.pause()
        return pids[0]

    made = object.__new__(zygote.Zygote)
    network = SimpleNamespace(close=lambda: closed.append(True))
    monkeypatch.setattr(made, "_pool", SimpleNamespace(lease=lambda: network), raising=False)
    monkeypatch.setattr(made, "_fork", fork)
    monkeypatch.setattr(made, "_send", said.append)
    monkeypatch.setattr(zygote, "_bare", lambda *_: -1)
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    with ours:
        made._spawn((7, 1, 0, ("", "", (), 0, False), {}), [theirs.detach()])
        assert b"isolation_failed" in ours.recv(4096) and ours.recv(1) == b""

    assert (said[0]["op"], said[0]["id"], closed) == ("failed", 7, [True])
    with pytest.raises(ChildProcessError):
        os.waitpid(pids[0], os.WNOHANG)
