"""A WebSocket for asyncio, against a server that the test plays."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hotbed.errors import NodeUnavailable, Unauthorized
from hotbed.sdk.addresses import Address
from hotbed.sdk.async_socket import AsyncSocket
from hotbed.sdk.transport import Link
from hotbed.sdk.websocket import TEXT, Message
from tests.unit.sdk.conftest import ScriptedNode
from tests.unit.sdk.test_blocking_socket import link_to, upgraded


def test_a_ping_is_answered_and_a_message_received(script: Callable[..., ScriptedNode]) -> None:
    """The caller sees messages only."""

    def play(connection: socket.socket) -> None:
        connection.sendall(b"\x89\x01?\x81\x02hi")
        assert connection.recv(100)[0] == 0x8A

    async def run() -> Message:
        made = await AsyncSocket.open(link_to(script(upgraded(play))), "/x")
        try:
            return await asyncio.wait_for(made.receive(), 5)
        finally:
            made.close()
            made.close()

    assert asyncio.run(run()) == (TEXT, b"hi")


def test_a_refusal_is_raised_as_what_it_is(script: Callable[..., ScriptedNode]) -> None:
    """And the connection is not kept."""

    def refuse(connection: socket.socket) -> None:
        connection.recv(65536)
        body = b'{"code": "unauthorized", "message": "who are you"}'
        connection.sendall(b"HTTP/1.1 401 x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    with pytest.raises(Unauthorized, match="who are you"):
        asyncio.run(AsyncSocket.open(link_to(script(refuse)), "/x"))


def test_a_full_queue_of_new_connections_is_waited_for(tmp_path: Path) -> None:
    """A thousand streams that begin at once are more than a node has let in at that moment."""
    path = str(tmp_path / "node.sock")

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            upgraded(lambda made: made.sendall(b"\x81\x02hi"))(connection)

    async def run() -> Message:
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
            listener.bind(path)
            listener.listen(0)
            first.connect(path)
            opening = asyncio.create_task(AsyncSocket.open(Link(Address(unix_path=path)), "/x"))
            await asyncio.sleep(0.1)
            assert not opening.done()
            listener.accept()[0].close()
            _, made = await asyncio.gather(asyncio.to_thread(serve, listener), opening)
            message = await asyncio.wait_for(made.receive(), 5)
            made.close()
            return message

    assert asyncio.run(run()) == (TEXT, b"hi")


def test_no_node_is_said_so() -> None:
    """At once."""
    with pytest.raises(NodeUnavailable):
        asyncio.run(AsyncSocket.open(Link(Address(unix_path="/nowhere/node.sock")), "/x"))
