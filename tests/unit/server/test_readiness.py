"""What a starting node tells who started it."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from hotbed.errors import IsolationUnavailable
from hotbed.server.readiness import Readiness
from hotbed.server.settings import notify_socket


def told(word: str) -> bytes:
    """Everything that arrives on the pipe."""
    reader, writer = os.pipe()
    readiness = Readiness(writer)
    if word == "ready":
        readiness.ready()
    readiness.failed(IsolationUnavailable("no namespaces", hint="sysctl"))
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read()


def test_only_the_first_word_counts() -> None:
    """A node that fails while it serves has been ready."""
    lines = told("ready").splitlines()

    assert [json.loads(line)["ready"] for line in lines] == [True]


def test_a_failure_travels_as_an_error_body() -> None:
    """So that connect() raises what doctor would say."""
    word = json.loads(told("failed"))

    assert (word["ready"], word["code"], word["hint"]) == (False, "isolation_unavailable", "sysctl")


@pytest.mark.parametrize("abstract", [False, True])
def test_a_service_manager_hears_when_the_node_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool
) -> None:
    """Then what it starts afterwards finds a node that answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0hotbed-test-{os.getpid()}" if abstract else str(tmp_path / "notify"))
        manager.setblocking(False)
        name = manager.getsockname()
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name[1:].decode() if abstract else name)
        readiness = Readiness(None, notify_socket())
        with pytest.raises(BlockingIOError):
            manager.recv(100)

        readiness.ready()

        assert manager.recv(100) == b"READY=1"
    assert notify_socket() is None  # what the node starts does not inherit it
    Readiness(None, name if isinstance(name, str) else name.decode()).ready()  # the manager is gone


def test_nobody_needs_to_wait() -> None:
    """`hotbed node` by hand, or a client that gave up."""
    Readiness(None).ready()
    reader, writer = os.pipe()
    os.close(reader)
    Readiness(writer).ready()
