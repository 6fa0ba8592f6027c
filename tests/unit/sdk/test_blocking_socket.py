"""A WebSocket for threads, against a server that the test plays."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import pytest

from hotbed.errors import NodeUnavailable, Unauthorized
from hotbed.sdk.addresses import Address
from hotbed.sdk.blocking_socket import BlockingSocket
from hotbed.sdk.transport import Link
from hotbed.sdk.websocket import TEXT
from tests.unit.sdk.conftest import ScriptedNode

ANSWER = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"


def upgraded(then: Callable[[socket.socket], None]) -> Callable[[socket.socket], None]:
    """A turn that lets the client in and goes on."""

    def turn(connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        connection.sendall(ANSWER)
        then(connection)

    return turn


def until_the_other_end(connection: socket.socket) -> None:
    """Says nothing and stays."""
    while connection.recv(65536):
        pass


def link_to(node: ScriptedNode) -> Link:
    """A link that needs no lease."""
    return Link(Address(unix_path=node.path))


def test_a_ping_is_answered_and_a_message_received(script: Callable[..., ScriptedNode]) -> None:
    """The caller sees messages only."""
    heard: list[bytes] = []

    def play(connection: socket.socket) -> None:
        connection.sendall(b"\x89\x01?\x81\x02hi")
        heard.append(connection.recv(100))

    made = BlockingSocket.open(link_to(script(upgraded(play))), "/x")

    assert made.receive(5) == (TEXT, b"hi")
    made.close()
    made.close()
    assert all(data[0] == 0x8A for data in heard)


def test_receiving_is_bounded_when_asked(script: Callable[..., ScriptedNode]) -> None:
    """And nothing is lost by it."""
    made = BlockingSocket.open(link_to(script(upgraded(until_the_other_end))), "/x")
    with pytest.raises(TimeoutError):
        made.receive(0.02)
    made.close()
    with pytest.raises(OSError):
        made.receive(1)


def test_a_refusal_is_raised_as_what_it_is(script: Callable[..., ScriptedNode]) -> None:
    """And the connection is not kept."""

    def refuse(connection: socket.socket) -> None:
        connection.recv(65536)
        body = b'{"code": "unauthorized", "message": "who are you"}'
        connection.sendall(b"HTTP/1.1 401 x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    with pytest.raises(Unauthorized, match="who are you"):
        BlockingSocket.open(link_to(script(refuse)), "/x")


def test_no_node_is_said_so(script: Callable[..., ScriptedNode]) -> None:
    """Neither one that hangs up, nor none."""
    with pytest.raises(NodeUnavailable):
        BlockingSocket.open(link_to(script(lambda connection: connection.close())), "/x")
    with pytest.raises(NodeUnavailable):
        BlockingSocket.open(Link(Address(unix_path="/nowhere/node.sock")), "/x")


def test_a_forked_child_that_closes_it_hangs_up_on_nobody(script: Callable[..., ScriptedNode]) -> None:
    """Whatever it leads to is the parent's."""

    def play(connection: socket.socket) -> None:
        heard = connection.recv(100)
        connection.sendall(b"\x81\x02hi" if heard[0] == 0x81 else b"\x88\x00")

    made = BlockingSocket.open(link_to(script(upgraded(play))), "/x")
    child = os.fork()
    if child == 0:
        try:
            made.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    made.send(TEXT, b"")

    assert made.receive(5) == (TEXT, b"hi")
    made.close()
