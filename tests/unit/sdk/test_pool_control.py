"""Getting lanes from a node that may refuse, lie or be gone."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import NodeUnavailable, ProtocolError, Unauthorized
from hotbed.guest import frames
from hotbed.sdk.addresses import Address
from hotbed.sdk.pool_control import NodeControl
from hotbed.sdk.transport import Link
from hotbed.wire.pools import PoolCreated

Serve = Callable[[frames.Connection, dict[str, Any]], None]


@contextmanager
def control_of(path: Path, serve: Serve) -> Iterator[NodeControl]:
    """A control whose node answers as the test says."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def answer() -> None:
        accepted, _ = listener.accept()
        connection = frames.Connection(accepted)
        try:
            while True:
                serve(connection, connection.receive()[0])
        except (frames.Closed, frames.FrameError, OSError):
            connection.close()

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    created = PoolCreated(
        id="pl_1",
        n=3,
        mode="default",
        template="python",
        template_digest="",
        isolation="fork",
        token="t",
        lanes=str(path),
    )
    control = NodeControl(Link(Address(unix_path="/nowhere.sock")), created)
    try:
        yield control
    finally:
        control._drop()
        thread.join(5)
        listener.close()


def grant(connection: frames.Connection, asked: dict[str, Any]) -> None:
    """Give a lane for each worker, the last first; none for worker 1."""
    for index in reversed(asked["workers"]):
        if index == 1:
            connection.send({"index": 1, "reason": "no room"})
            continue
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            connection.send({"index": index, "generation": 1, "isolation": "fork"}, fds=[theirs.fileno()])
            ours.send(b"from %d" % index)


def test_lanes_come_with_their_workers_and_refusals_with_reasons(tmp_path: Path) -> None:
    """In whatever order; the connection serves for the next time too."""
    with control_of(tmp_path / "s", grant) as control:
        for _ in range(2):
            grants = {one.index: one for one in control.open([0, 1, 2])}
            assert (grants[1].sock, grants[1].reason) == (None, "no room")
            for index in (0, 2):
                sock = grants[index].sock
                assert sock is not None and sock.type == socket.SOCK_SEQPACKET
                assert (sock.recv(99), grants[index].isolation) == (b"from %d" % index, "fork")
                sock.close()


def test_a_refusal_of_the_whole_raises_what_the_node_raised(tmp_path: Path) -> None:
    """The pool is not ours, or over."""

    def refuse(connection: frames.Connection, asked: dict[str, Any]) -> None:
        connection.send({"error": Unauthorized("not your pool").to_wire()})

    with control_of(tmp_path / "s", refuse) as control, pytest.raises(Unauthorized, match="not your pool"):
        control.open([0])


def test_two_descriptors_are_not_one_lane(tmp_path: Path) -> None:
    """Nothing is guessed about an answer that is not ours."""

    def confuse(connection: frames.Connection, asked: dict[str, Any]) -> None:
        ends = os.pipe()
        connection.send({"index": 0, "isolation": "fork"}, fds=ends)
        for fd in ends:
            os.close(fd)

    with control_of(tmp_path / "s", confuse) as control, pytest.raises(ProtocolError):
        control.open([0])


def test_a_node_that_goes_away_is_unavailable(tmp_path: Path) -> None:
    """In the middle of an answer."""

    def leave(connection: frames.Connection, asked: dict[str, Any]) -> None:
        connection.close()

    with control_of(tmp_path / "s", leave) as control, pytest.raises(NodeUnavailable):
        control.open([0])


def test_a_node_that_is_gone_has_ended_the_pool_already() -> None:
    """Closing it is no error; asking for lanes is."""
    created = PoolCreated(
        id="pl_1", n=1, mode="default", template="p", template_digest="", isolation="fork", token="t", lanes="/nowhere"
    )
    control = NodeControl(Link(Address(unix_path="/nowhere.sock")), created)
    control.close()

    with pytest.raises(NodeUnavailable):
        control.open([0])


def test_the_client_tells_its_waiting_and_asks_for_no_answer(tmp_path: Path) -> None:
    """Before it has a connection there is nothing to tell it on, and a node that is gone does not mind."""
    heard: list[dict[str, Any]] = []

    def serve(connection: frames.Connection, asked: dict[str, Any]) -> None:
        heard.append(asked)
        if "workers" in asked:
            grant(connection, asked)

    with control_of(tmp_path / "lanes.sock", serve) as control:
        control.waited([(9.0, 8.0, 1.0, 1)])
        for found in control.open([0]):
            assert found.sock is not None
            found.sock.close()
        control.waited([(2.0, 1.0, 0.5, 3)])
        for found in control.open([2]):
            assert found.sock is not None
            found.sock.close()
    control.waited([(1.0, 0.0, 1.0, 1)])

    assert [asked["waited"] for asked in heard if "waited" in asked] == [[[2.0, 1.0, 0.5, 3]]]
