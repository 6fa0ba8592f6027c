"""Waiting on plain sockets from an event loop, without a transport between: what is peeked at stays in the socket, and
what is relayed never enters this process."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from hotbed.egress.addresses import Address, plain

_RESET = struct.pack("ii", 1, 0)


async def readable(sock: socket.socket, patience_s: float | None = None) -> None:
    """Wait until there is something to read, or its end. Raises `asyncio.TimeoutError`.

    A timer costs a connection less than a task for each of its waits (`asyncio.wait_for`).
    """
    loop = asyncio.get_running_loop()
    await _wait(sock, loop.add_reader, loop.remove_reader, patience_s)


async def writable(sock: socket.socket, patience_s: float | None = None) -> None:
    """Wait until there is room to write, or it broke. Raises `asyncio.TimeoutError`."""
    loop = asyncio.get_running_loop()
    await _wait(sock, loop.add_writer, loop.remove_writer, patience_s)


async def _wait(
    sock: socket.socket, add: Callable[..., Any], remove: Callable[[int], Any], patience_s: float | None
) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(patience_s, _give_up, ready) if patience_s is not None else None
    add(sock.fileno(), _wake, ready)
    try:
        await ready
    finally:
        if timer is not None:
            timer.cancel()
        if sock.fileno() >= 0:
            remove(sock.fileno())


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _give_up(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_exception(asyncio.TimeoutError())


async def receive(sock: socket.socket, size: int, patience_s: float | None = None) -> bytes:
    """What is there, up to so much; empty at the end."""
    while True:
        try:
            return sock.recv(size)
        except (BlockingIOError, InterruptedError):
            await readable(sock, patience_s)


async def send(sock: socket.socket, data: bytes, patience_s: float | None = None) -> None:
    """All of it; each piece in so long."""
    view = memoryview(data)
    while view:
        try:
            view = view[sock.send(view) :]
        except (BlockingIOError, InterruptedError):
            await writable(sock, patience_s)


async def dial(address: Address, port: int, patience_s: float | None = None) -> socket.socket:
    """A connection to exactly this address. Raises `OSError`."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = sock.connect_ex((str(address), port))
        if code == 115:  # EINPROGRESS
            await writable(sock, patience_s)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
    except BaseException:  # also when cancelled
        sock.close()
        raise
    return sock


def meant_for(sock: socket.socket) -> tuple[Address, int]:
    """Where the other side of an accepted connection believes to be."""
    name = sock.getsockname()
    return plain(ip_address(name[0].partition("%")[0])), name[1]


def is_own(address: Address) -> bool:
    """Whether this machine has the address itself: then a socket can be bound to it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True


def reset(sock: socket.socket) -> None:
    """Close at once, and let the other side know that it was no proper end. Idempotent."""
    if sock.fileno() >= 0:
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        except OSError:
            pass  # it broke already
        sock.close()
