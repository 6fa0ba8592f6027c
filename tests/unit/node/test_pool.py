"""Each seat of a pool is on its own: opened, replaced and ended without the others noticing."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import NotFound, PoolClosed, SandboxFailed
from hotbed.guest.environments import lane, values
from hotbed.wire.pools import WorkerTrouble
from tests.unit.node.pooling import backend_of, pooling_node, wanted


async def speak(sock: socket.socket, **request: Any) -> dict[str, Any]:
    """One request, the first word skipped."""
    loop, inbox = asyncio.get_running_loop(), lane.Inbox()
    sock.setblocking(False)
    await loop.sock_sendall(sock, values.pack({"id": 1, **request}))
    while True:
        header = inbox.take(await asyncio.wait_for(loop.sock_recv(sock, lane.PACKET), 5))
        if header is not None and "op" not in header:
            return header


def test_a_fresh_lane_leads_to_a_fresh_environment(tmp_path: Path) -> None:
    """Who opens a seat again gets another worker; the first is ended."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            pool = node.pools.get((await node.pools.create(await wanted(node, tmp_path), None)).id)
            first = await pool.open(0)
            with first.lease() as sock:
                answer = await speak(sock, op="reset", seed=7)
            second = await pool.open(0)

            assert answer["task"] == {"seed": 7}
            assert (second.generation > first.generation, second.state, first.state) == (True, "waiting", "ended")
            assert pool.row().replaced == 1
            assert [worker.state for worker in pool.row().workers] == ["waiting", "waiting"]

    asyncio.run(main())


def test_a_worker_nobody_has_had_is_not_replaced(tmp_path: Path) -> None:
    """The first open takes what the filling made."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            pool = node.pools.get((await node.pools.create(await wanted(node, tmp_path), None)).id)

            assert await pool.open(1) is await pool.open(1)
            assert backend_of(node).forks == 2

    asyncio.run(main())


@pytest.mark.parametrize(
    ("statement", "status", "exit_code", "signal"),
    [
        ("os._exit(3)", "exit", 3, None),
        ("os._exit(0)", "exit", 0, None),
        ("os.kill(os.getpid(), 11)", "signal", None, 11),
    ],
)
def test_how_a_worker_died_is_told(
    tmp_path: Path, statement: str, status: str, exit_code: int | None, signal: int | None
) -> None:
    """To the client that saw only its lane close; with what it had printed."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            pool = node.pools.get((await node.pools.create(await wanted(node, tmp_path), None)).id)
            with (await pool.open(0)).lease() as sock:
                sock.sendall(values.pack({"id": 1, "op": "step", "action": statement}))
                [end] = await pool.end([WorkerTrouble(index=0, trouble="closed")])

            assert (end.status, end.exit_code, end.signal, end.stdout) == (status, exit_code, signal, "stepped\n")

    asyncio.run(main())


def test_a_worker_that_was_given_up_is_killed(tmp_path: Path) -> None:
    """It hangs, and its client's patience is over."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            pool = node.pools.get((await node.pools.create(await wanted(node, tmp_path), None)).id)
            with (await pool.open(0)).lease() as sock:
                sock.sendall(values.pack({"id": 1, "op": "step", "action": "while True: pass"}))
                await pool.end([WorkerTrouble(index=0, trouble="timeout")])
            await node.nursery.wait_empty(timeout_s=0.5)

            assert [worker.state for worker in pool.row().workers] == ["ended", "waiting"]
            assert len(backend_of(node).boxes) == 1

    asyncio.run(main())


def test_what_a_worker_prints_can_be_read_while_it_lives_and_after(tmp_path: Path) -> None:
    """An author debugs with print."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            pool = node.pools.get((await node.pools.create(await wanted(node, tmp_path), None)).id)
            with (await pool.open(0)).lease() as sock:
                await speak(sock, op="step", action=1)
                living = await pool.output(0)
                await pool.end([WorkerTrouble(index=0, trouble="timeout")])

            assert (living.stdout, (await pool.output(0)).stdout) == ("stepped\n", "stepped\n")

    asyncio.run(main())


def test_the_sandbox_ends_with_the_environments_process(tmp_path: Path) -> None:
    """A child it left behind would hold the lane open, and its client would wait."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            pool = node.pools.get((await node.pools.create(await wanted(node, tmp_path), None)).id)
            with (await pool.open(0)).lease() as sock:
                sock.sendall(values.pack({"id": 1, "op": "step", "action": "os._exit(1)"}))
                while len(backend_of(node).boxes) == 2:
                    await asyncio.sleep(0.01)

    asyncio.run(main())


def test_an_ended_pool_opens_nothing(tmp_path: Path) -> None:
    """And a seat that never was is not found."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            pool = node.pools.get((await node.pools.create(await wanted(node, tmp_path), None)).id)
            with pytest.raises(NotFound):
                await pool.open(2)
            with pytest.raises(NotFound):
                await pool.end([WorkerTrouble(index=9, trouble="closed")])
            await pool.close("deleted")
            await pool.close("deleted")

            with pytest.raises(PoolClosed):
                await pool.open(0)

    asyncio.run(main())


def test_a_seat_whose_worker_cannot_be_made_can_be_tried_again(tmp_path: Path) -> None:
    """It is that seat's trouble, and it may pass."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            pool = node.pools.get((await node.pools.create(await wanted(node, tmp_path), None)).id)
            (await pool.open(0)).discard("test")
            backend_of(node).refuse = {3}
            with pytest.raises(SandboxFailed):
                await pool.open(0)

            assert (await pool.open(0)).state == "waiting"

    asyncio.run(main())
