"""Local ports that lead inside, blocking face."""

from __future__ import annotations

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
