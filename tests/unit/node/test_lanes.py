"""Lanes go to who knows the pool's token, one descriptor each; a bad request costs its connection nothing."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.guest import frames
from hotbed.guest.environments import lane
from hotbed.node.lanes import LaneServer
from hotbed.node.node import Node
from hotbed.wire.pools import PoolCreated
from tests.unit.node.pooling import backend_of, pooling_node, wanted

Answer = tuple[dict[str, Any], list[int]]


@asynccontextmanager
async def serving(tmp_path: Path, n: int = 3) -> AsyncIterator[tuple[Node, PoolCreated]]:
    """A node that hands out lanes, and a pool."""
    async with pooling_node(tmp_path / "home") as node:
        server = LaneServer(node.pools, node.nursery, node.waits)
        server.listen(tmp_path / "lanes.sock")
        try:
            yield node, await node.pools.create(await wanted(node, tmp_path, n), None)
        finally:
            server.close()
            server.close()
            assert not (tmp_path / "lanes.sock").exists()


def ask(path: Path, answers: int, request: dict[str, Any]) -> list[Answer]:
    """What a client does, in a thread of its own."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(10)
    sock.connect(str(path))
    connection = frames.Connection(sock)
    connection.send(request)
    received = [connection.receive() for _ in range(answers)]
    connection.close()
    return [(header, fds) for header, _, fds in received]


def test_each_worker_comes_with_its_lane(tmp_path: Path) -> None:
    """Under its own number, whatever the order."""

    async def main() -> None:
        async with serving(tmp_path) as (_, pool):
            request = {"pool": pool.id, "token": pool.token, "workers": [2, 0, 1]}
            answers = await asyncio.to_thread(ask, tmp_path / "lanes.sock", 3, request)
            for header, fds in answers:
                with socket.socket(fileno=fds[0]) as sock:
                    sock.settimeout(10)
                    word = lane.Inbox().take(await asyncio.to_thread(sock.recv, lane.PACKET))
                assert (word or {})["op"] == "ready"
                assert header["isolation"] == "fake"

            assert sorted(header["index"] for header, _ in answers) == [0, 1, 2]

    asyncio.run(main())


def test_a_worker_that_cannot_be_made_is_refused_alone(tmp_path: Path) -> None:
    """The reason takes the place of the descriptor."""

    async def main() -> None:
        async with serving(tmp_path) as (node, pool):
            for index in range(3):
                (await node.pools.get(pool.id).open(index)).discard("test")
            backend_of(node).refuse = {5}
            request = {"pool": pool.id, "token": pool.token, "workers": [0, 1, 2]}
            answers = await asyncio.to_thread(ask, tmp_path / "lanes.sock", 3, request)
            for fd in [fd for _, fds in answers for fd in fds]:
                os.close(fd)

            refusals = [header for header, fds in answers if not fds]
            assert [header["reason"] for header in refusals] == ["no room in this test"]

    asyncio.run(main())


def test_bad_requests_are_answered_with_an_error(tmp_path: Path) -> None:
    """Each on its own connection here, but none is closed for it."""

    async def main() -> None:
        async with serving(tmp_path) as (_, pool):
            good = {"pool": pool.id, "token": pool.token, "workers": [0]}
            bad: list[tuple[dict[str, Any], str]] = [
                ({}, "invalid_request"),
                ({**good, "token": "0" * 32}, "unauthorized"),
                ({**good, "token": 7}, "invalid_request"),
                ({**good, "pool": "pl_other"}, "not_found"),
                ({**good, "workers": [3]}, "invalid_request"),
                ({**good, "workers": [0, 0]}, "invalid_request"),
                ({**good, "workers": [True]}, "invalid_request"),
                ({**good, "workers": [[0]]}, "invalid_request"),
            ]
            for request, code in bad:
                [(header, fds)] = await asyncio.to_thread(ask, tmp_path / "lanes.sock", 1, request)
                assert (header["error"]["code"], fds) == (code, [])

    asyncio.run(main())


def test_only_this_user_can_connect(tmp_path: Path) -> None:
    """A lane is the environment itself."""

    async def main() -> None:
        async with serving(tmp_path):
            assert stat.S_IMODE((tmp_path / "lanes.sock").stat().st_mode) == 0o600

    asyncio.run(main())


def test_where_it_cannot_listen_is_said_and_it_can_still_be_closed(tmp_path: Path) -> None:
    """Closing it then removed the directory in which it ran, or tried to."""

    async def main() -> None:
        async with serving(tmp_path) as (node, _):
            server = LaneServer(node.pools, node.nursery, node.waits)
            with pytest.raises(InvalidRequest, match="cannot listen"):
                server.listen(tmp_path / "missing" / "lanes.sock")
            server.close()

    asyncio.run(main())


def test_a_client_that_is_gone_costs_no_descriptor(tmp_path: Path) -> None:
    """Its lane is closed, and with it the worker's own end."""

    async def main() -> None:
        async with serving(tmp_path, 1) as (node, pool):
            sock = socket.socket(socket.AF_UNIX)
            await asyncio.to_thread(sock.connect, str(tmp_path / "lanes.sock"))
            sock.sendall(frames.pack({"pool": pool.id, "token": pool.token, "workers": [0]}))
            sock.close()
            while backend_of(node).boxes:
                await asyncio.sleep(0.01)

    asyncio.run(main())


def test_what_a_client_tells_of_its_waiting_is_noted_for_who_has_the_token(tmp_path: Path) -> None:
    """On the same connection, unanswered; with a wrong token it is nothing."""

    async def main() -> None:
        async with serving(tmp_path) as (node, pool):
            for token in ("wrong", pool.token):
                told = {"pool": pool.id, "token": token, "waited": [[2.0, 1.0, 0.5, 7]]}
                await asyncio.to_thread(ask, tmp_path / "lanes.sock", 0, told)
            request = {"pool": pool.id, "token": pool.token, "workers": [9]}
            await asyncio.to_thread(ask, tmp_path / "lanes.sock", 1, request)

            [meter] = node.waits
            assert [burst.requests for burst in meter.bursts] == [7]

    asyncio.run(main())
