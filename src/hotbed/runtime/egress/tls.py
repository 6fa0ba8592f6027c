"""TLS ended here: what is said inside a connection to a host that the policy has read, as a plain socket.

Each end of a sandbox's connection gets a pair of sockets beside it: what arrives encrypted comes out of the pair in the
clear, and what is written to the pair goes out encrypted. So whoever reads HTTP need not know of TLS. Only HTTP/1.1 is
offered (ALPN), and outside, certificates are verified as usual.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache

from hotbed.runtime.egress import sockets

SHAKE_HANDS_S = 10.0
_IDLE_S = 900.0
_CHUNK = 1 << 16
_WANTS = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


@lru_cache(maxsize=1)
def outside() -> ssl.SSLContext:
    """For connections to the world: as this machine trusts it."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


@lru_cache(maxsize=256)
def inside(chain_pem: bytes) -> ssl.SSLContext:
    """For connections from a sandbox: with a certificate and its key, which are never in a file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    fd = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(fd, chain_pem)
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    return context


@asynccontextmanager
async def plain(sock: socket.socket, context: ssl.SSLContext, name: str = "") -> AsyncIterator[socket.socket]:
    """What is said in a TLS connection; as its client if there is a `name` to be verified. Raises `OSError`."""
    wrapped = Wrapped(sock, context, name)
    try:
        await asyncio.wait_for(wrapped.shake_hands(), SHAKE_HANDS_S)
    except asyncio.TimeoutError:
        raise TimeoutError(f"no TLS within {SHAKE_HANDS_S:.0f} s") from None
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        tasks = [asyncio.ensure_future(work(theirs)) for work in (wrapped.decrypt, wrapped.encrypt)]
        try:
            yield ours
            ours.shutdown(socket.SHUT_WR)
            await asyncio.wait(tasks[1:], timeout=SHAKE_HANDS_S)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class Wrapped:
    """One TLS connection over a socket that stays the caller's."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, name: str) -> None:
        self._sock = sock
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=not name, server_hostname=name or None)

    async def shake_hands(self) -> None:
        """Up to where something can be said. Raises `OSError`: an `ssl.SSLError` is one."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except _WANTS:
                await self._flush()
                await self._feed()
            finally:
                await self._flush()  # also the alert that says why not

    async def decrypt(self, plain_end: socket.socket) -> None:
        """What arrives, into the clear, to its end."""
        try:
            while data := await self._read():
                await sockets.send(plain_end, data, _IDLE_S)
        finally:
            _end_writing(plain_end)

    async def encrypt(self, plain_end: socket.socket) -> None:
        """What is written in the clear, out, to its end."""
        while data := await sockets.receive(plain_end, _CHUNK):
            self._tls.write(data)
            await self._flush()
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass  # it waits for the other side's farewell: ours is said
        await self._flush()

    async def _read(self) -> bytes:
        while True:
            try:
                return self._tls.read(_CHUNK)
            except _WANTS:
                await self._feed()  # what this wants said (a key update) goes out with what is said next
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    async def _feed(self) -> None:
        data = await sockets.receive(self._sock, _CHUNK)
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()

    async def _flush(self) -> None:
        if data := self._out.read():
            await sockets.send(self._sock, data, _IDLE_S)


def _end_writing(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # nobody reads it any more
