"""Local ports that lead inside, blocking face."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from hotbed.sdk.client import Client
from hotbed.sdk.sandbox import Sandbox


def test_several_connections_are_served_until_it_is_closed(client: Client) -> None:
    """By one thread, which is gone then."""
    with socket.create_server(("127.0.0.1", 0)) as inside, Sandbox("python", client=client) as sandbox:
        with sandbox.port_forward(inside.getsockname()[1]) as forward:
            assert forward.url == f"http://{forward.address}" == f"http://{forward.host}:{forward.port}"
            pairs = []
            for number in range(3):
                ours = socket.create_connection((forward.host, forward.port), 10)
                theirs, _ = inside.accept()
                ours.sendall(b"%d" % number)
                assert theirs.recv(10) == b"%d" % number
                pairs.append((ours, theirs))
        forward.close()
        for ours, theirs in pairs:
            ours.settimeout(10)
            assert ours.recv(10) == b""
            ours.close()
            theirs.close()

    assert not [thread for thread in threading.enumerate() if thread.name == "hotbed-port-forward"]
    with pytest.raises(OSError):
        socket.create_connection((forward.host, forward.port), 1)


def test_a_local_port_in_use_is_told_and_leaves_no_thread(client: Client) -> None:
    """It is this machine's error."""
    with socket.create_server(("127.0.0.1", 0)) as taken, Sandbox("python", client=client) as sandbox:
        with pytest.raises(OSError):
            sandbox.port_forward(80, local_port=taken.getsockname()[1])

    assert not [thread for thread in threading.enumerate() if thread.name == "hotbed-port-forward"]


def test_connections_that_are_full_end_with_it(client: Client) -> None:
    """At once, also where nobody reads what is on its way."""
    with socket.create_server(("127.0.0.1", 0)) as inside, Sandbox("python", client=client) as sandbox:
        before = len(os.listdir("/proc/self/fd"))
        forward = sandbox.port_forward(inside.getsockname()[1])
        with socket.create_connection((forward.host, forward.port), 10) as ours, inside.accept()[0] as theirs:
            for end in (ours, theirs):
                end.settimeout(0.5)
                with pytest.raises(TimeoutError):
                    end.sendall(bytes(32 << 20))
            forward.close()
            assert len(os.listdir("/proc/self/fd")) == before + 2


def test_a_forked_child_leaves_it_alone(client: Client) -> None:
    """The thread that serves it is the parent's, and a child that waited for it would wait for ever."""
    with socket.create_server(("127.0.0.1", 0)) as inside, Sandbox("python", client=client) as sandbox:
        with sandbox.port_forward(inside.getsockname()[1]) as forward:
            child = os.fork()
            if child == 0:
                try:
                    forward.close()
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            with socket.create_connection((forward.host, forward.port), 10) as ours, inside.accept()[0] as theirs:
                theirs.sendall(b"still here")
                ours.settimeout(10)
                assert ours.recv(10) == b"still here"


def test_where_no_thread_can_be_started_nothing_is_left(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it wait for one that never was."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with Sandbox("python", client=client) as sandbox:
        before = len(os.listdir("/proc/self/fd"))
        monkeypatch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            sandbox.port_forward(80)
        assert len(os.listdir("/proc/self/fd")) == before
