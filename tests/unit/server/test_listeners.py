"""Where a node listens."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from hotbed.errors import Error, InvalidRequest, NodeUnavailable
from hotbed.server.listeners import SocketOwnership, check_length, listen, listen_tcp, listen_unix
from hotbed.server.settings import Settings


def test_a_unix_socket_replaces_a_dead_one_and_is_ours_alone(tmp_path: Path) -> None:
    """It is connectable from the moment that it exists."""
    path = tmp_path / "node.sock"
    listen_unix(path).close()
    with listen_unix(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [entry.name for entry in tmp_path.iterdir()] == ["node.sock"]


def test_a_path_has_one_owner(tmp_path: Path) -> None:
    """Two nodes on one socket would split a client's requests between them."""
    path = tmp_path / "node.sock"
    first = SocketOwnership.take(path)
    with pytest.raises(NodeUnavailable, match="already serves"):
        SocketOwnership.take(path, wait_s=0)

    path.touch()
    first.withdraw()
    first.withdraw()
    assert not path.exists()
    first.release()
    SocketOwnership.take(path, wait_s=0).release()


def test_who_wants_the_path_of_a_node_that_is_ending_waits_for_it(tmp_path: Path) -> None:
    """A server that drains still listens: a restart by hand must not be told to stop it first."""
    path = tmp_path / "node.sock"
    first = SocketOwnership.take(path)
    with listen_unix(path):
        first.announce_end()
        threading.Timer(0.1, first.release).start()
        SocketOwnership.take(path).release()


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    """A typing error is no traceback."""
    with pytest.raises(InvalidRequest, match="cannot be written"):
        SocketOwnership.take(tmp_path / "nope" / "node.sock")


def test_tcp_connections_send_at_once(tmp_path: Path) -> None:
    """Two small writes must not wait for each other's acknowledgement."""
    with listen_tcp("127.0.0.1", 0, dead_after_s=3) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        port = listener.getsockname()[1]
        with pytest.raises(NodeUnavailable, match=str(port)):  # it may be free soon
            listen_tcp("127.0.0.1", port, dead_after_s=3)
    both = listen(Settings(socket=str(tmp_path / "s"), port=port))
    assert len(both) == 2
    for one in both:
        one.close()


def test_a_path_has_room_for_the_names_beside_it(tmp_path: Path) -> None:
    """The lanes' socket has a longer one, and was found too long when the node had started."""
    longest = tmp_path / ("x" * (97 - len(os.fsencode(tmp_path)) - 1))

    check_length(longest)
    with pytest.raises(InvalidRequest, match="97 bytes"):
        check_length(longest.with_name(f"{longest.name}x"))


def test_where_nothing_can_listen_is_said(tmp_path: Path) -> None:
    """With the path, not an errno."""
    with pytest.raises(InvalidRequest, match="too long"):
        listen_unix(tmp_path / ("x" * 120))
    with pytest.raises(InvalidRequest, match="cannot listen"):
        listen_unix(tmp_path / "missing" / "s")
    with pytest.raises(Error, match="cannot listen"):
        listen_tcp("host.invalid.", 1, dead_after_s=1)
