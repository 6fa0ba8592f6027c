"""TLS ended here. Names and trust are held in tests/unit/node/test_authority.py."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from hotbed.node.authority import Authority
from hotbed.runtime.egress import sockets, tls

SIZE = 3 << 20


def test_much_goes_both_ways_at_once_and_to_its_end() -> None:
    """As through any socket."""

    async def act() -> tuple[int, int]:
        authority = Authority()
        ours, theirs = socket.socketpair()
        for sock in (ours, theirs):
            sock.setblocking(False)
        trusting = ssl.create_default_context(cadata=authority.certificate_pem().decode())
        with ours, theirs:
            up, down = await asyncio.gather(
                _spoken(theirs, tls.inside(authority.chain_pem("a.org")), ""), _spoken(ours, trusting, "a.org")
            )
        return up, down

    assert asyncio.run(act()) == (SIZE, SIZE)


async def _spoken(sock: socket.socket, context: ssl.SSLContext, name: str) -> int:
    """Say much and count what is heard meanwhile."""
    async with tls.plain(sock, context, name) as clear:
        saying = asyncio.ensure_future(sockets.send(clear, b"x" * SIZE))
        heard = 0
        while heard < SIZE:
            heard += len(await sockets.receive(clear, 1 << 16))
        await saying
        return heard


def test_what_is_no_tls_is_told_as_an_error_of_the_connection() -> None:
    """It is one, to whoever dials."""

    async def act() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with ours, theirs:
            theirs.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            async with tls.plain(ours, tls.outside(), "a.org"):
                raise AssertionError

    with pytest.raises(OSError, match="SSL|WRONG|wrong"):
        asyncio.run(act())


def test_a_key_is_in_no_file() -> None:
    """A certificate is loaded from memory."""
    before = set(Path("/proc/self/fd").iterdir())
    tls.inside(Authority().chain_pem("a.org"))

    assert len(set(Path("/proc/self/fd").iterdir()) - before) <= 1  # the directory itself
