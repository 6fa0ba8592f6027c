"""Plain sockets on an event loop."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address

import pytest

from hotbed.runtime.egress import sockets


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends that do not block."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


def test_more_than_a_socket_takes_is_sent() -> None:
    """Piece by piece."""

    async def act() -> int:
        ours, theirs = pair()
        with ours, theirs:
            sending = asyncio.ensure_future(sockets.send(ours, b"x" * (4 << 20)))
            size = 0
            while size < 4 << 20:
                size += len(await sockets.receive(theirs, 1 << 20))
            await sending
            return size

    assert asyncio.run(act()) == 4 << 20


def test_dialling_where_nobody_listens_is_an_error() -> None:
    """And leaves no socket."""

    async def act() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        await sockets.dial(ip_address("127.0.0.1"), port)

    with pytest.raises(OSError, match="refused"):
        asyncio.run(act())


def test_an_accepted_connection_tells_where_it_was_meant_for() -> None:
    """That is all a transparent door has to go by."""

    async def act() -> tuple[object, int]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            with await sockets.dial(ip_address("127.0.0.1"), server.getsockname()[1]):
                inner, _ = server.accept()
                with inner:
                    return sockets.meant_for(inner)

    address, port = asyncio.run(act())

    assert address == ip_address("127.0.0.1") and port > 0


def test_own_addresses_are_known() -> None:
    """Whatever they are called."""
    assert sockets.is_own(ip_address("127.0.0.1"))
    assert not sockets.is_own(ip_address("93.184.215.14"))


def test_a_reset_is_told() -> None:
    """It is no proper end."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        inner, _ = server.accept()
        sockets.reset(inner)
        sockets.reset(inner)

        with pytest.raises(ConnectionResetError):
            client.recv(1)
