"""Bytes that never enter this process."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from hotbed.runtime.egress import sockets
from hotbed.runtime.egress.relay import Pipes, relay


def tcp() -> tuple[socket.socket, socket.socket]:
    """Two ends of a connection that do not block."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    for sock in (ours, theirs):
        sock.setblocking(False)
    return ours, theirs


def test_both_ways_to_both_ends() -> None:
    """Everything arrives and is counted, and an end is passed on."""

    async def act() -> tuple[bytes, bytes, list[int]]:
        client, inner = tcp()
        outer, server = tcp()
        pipes, counts = Pipes(), [0, 0]

        def up(size: int) -> None:
            counts[0] += size

        def down(size: int) -> None:
            counts[1] += size

        with client, inner, outer, server:
            task = asyncio.ensure_future(relay(inner, outer, pipes, up=up, down=down))
            await sockets.send(client, b"question")
            client.shutdown(socket.SHUT_WR)
            asked = await sockets.receive(server, 100)
            ended = await sockets.receive(server, 100)
            await sockets.send(server, b"answer" * 100_000)
            server.shutdown(socket.SHUT_WR)
            told = b""
            while data := await sockets.receive(client, 1 << 20):
                told += data
            await task
        pipes.close()
        return asked + ended, told, counts

    asked, told, counts = asyncio.run(act())

    assert asked == b"question" and told == b"answer" * 100_000
    assert counts == [8, 600_000]


def test_who_counts_may_end_it() -> None:
    """A budget is spent before the bytes go."""

    async def act() -> bytes:
        client, inner = tcp()
        outer, server = tcp()

        def no_more(size: int) -> None:
            raise ValueError("spent")

        with client, inner, outer, server:
            await sockets.send(client, b"question")
            with pytest.raises(ValueError, match="spent"):
                await relay(inner, outer, Pipes(), up=no_more, down=no_more)
            outer.close()
            return await sockets.receive(server, 100)

    assert asyncio.run(act()) == b""


def test_a_pipe_that_is_not_empty_is_not_used_again() -> None:
    """One connection's bytes must not end up in another's."""
    pipes = Pipes()
    with pytest.raises(ValueError, match="broke"), pipes.borrowed() as (_, into):
        os.write(into, b"left")
        raise ValueError("broke")
    with pipes.borrowed() as (out, _), pytest.raises(BlockingIOError):
        os.read(out, 10)
    pipes.close()
