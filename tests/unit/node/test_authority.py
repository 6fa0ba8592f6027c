"""The authority that sandboxes trust for hosts that are read."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from hotbed.node.authority import Authority
from hotbed.runtime.egress import tls


def test_a_client_that_trusts_it_speaks_to_any_host() -> None:
    """And one that does not, does not; names are held against the certificate."""
    authority = Authority()

    assert asyncio.run(_spoken(authority, "a.org", "a.org")) == b"hello"
    with pytest.raises(ssl.SSLCertVerificationError, match="[Hh]ostname"):
        asyncio.run(_spoken(authority, "a.org", "b.org"))
    with pytest.raises(ssl.SSLCertVerificationError, match="self|issuer"):
        asyncio.run(_spoken(Authority(), "a.org", "a.org", trusted=authority))


def test_a_host_is_signed_for_once() -> None:
    """Whatever it is called."""
    authority = Authority()
    name = ".".join(["a" * 60] * 3)

    assert authority.chain_pem("a.org") is authority.chain_pem("a.org") != authority.chain_pem(name)
    assert authority.bundle_pem().endswith(authority.certificate_pem())


async def _spoken(authority: Authority, signed: str, asked: str, trusted: Authority | None = None) -> bytes:
    """What a client that asks for a name hears from a server with the certificate of another."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    context = ssl.create_default_context(cadata=(trusted or authority).certificate_pem().decode())

    async def serve() -> None:
        async with tls.plain(theirs, tls.inside(authority.chain_pem(signed))) as clear:
            await asyncio.get_running_loop().sock_sendall(clear, b"hello")

    with ours, theirs:
        serving = asyncio.ensure_future(serve())
        try:
            async with tls.plain(ours, context, asked) as clear:
                return await asyncio.get_running_loop().sock_recv(clear, 100)
        finally:
            ours.close()
            await asyncio.gather(serving, return_exceptions=True)
