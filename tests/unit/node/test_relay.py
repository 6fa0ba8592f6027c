"""The node passes frames on for clients that are elsewhere, and reads nothing of them but their lengths."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.errors import InvalidRequest, PoolClosed
from hotbed.guest import frames
from hotbed.guest.environments import lane, values
from hotbed.node.relay import Relay, parse
from tests.unit.node.pooling import backend_of, pooling_node, wanted

Answer = tuple[list[dict[str, Any]], dict[int, Any]]


@asynccontextmanager
async def relaying(tmp_path: Path, n: int = 3) -> AsyncIterator[Relay]:
    """A pool whose lanes stay at the node, each ready."""
    async with pooling_node(tmp_path / "home") as node:
        pool = node.pools.get((await node.pools.create(await wanted(node, tmp_path, n), None)).id)
        relay = node.pools.relay_of(pool)
        assert node.pools.relay_of(pool) is relay
        every = list(range(n))
        grants, ready = await exchange(relay, open=every, collect=every, want=n, patience_s=5.0)
        assert sorted(grant["index"] for grant in grants) == every
        assert all(word["op"] == "ready" for word in ready.values())
        yield relay
        assert len(backend_of(node).boxes) <= n


async def exchange(relay: Relay, *posts: tuple[int, dict[str, Any]], timeout_s: float = 5.0, **head: Any) -> Answer:
    """One exchange: the grants, and by worker the header that arrived, or its trouble."""
    body = frames.pack(head) + b"".join(
        frames.pack({"worker": index, "timeout_s": timeout_s}, values.pack(request)) for index, request in posts
    )
    decoder = frames.Decoder()
    decoder.feed(await relay.exchange(parse(body)))
    (first, _), *rest = [frame for frame in iter(decoder.next, None) if frame is not None]
    return first["grants"], {header["worker"]: read(frame) if frame else header["trouble"] for header, frame in rest}


def read(frame: bytes) -> Any:
    """A lane frame as its client reads it."""
    try:
        return lane.Inbox().take(frame)
    except frames.FrameError:
        return "nonsense"


def step(action: object) -> dict[str, Any]:
    """A request to step."""
    return {"op": "step", "id": 1, "action": action}


def test_requests_go_out_and_answers_come_back_in_one_exchange(tmp_path: Path) -> None:
    """Whoever was not waited for is kept."""

    async def main() -> None:
        async with relaying(tmp_path) as relay:
            _, one = await exchange(
                relay, (0, step(5)), (1, step(6)), (2, step(7)), collect=[1], want=1, patience_s=5.0
            )
            _, others = await exchange(relay, collect=[0, 2], want=2, patience_s=5.0)

            assert one[1]["step"][0] == 6
            assert {index: answer["step"][0] for index, answer in others.items()} == {0: 5, 2: 7}

    asyncio.run(main())


def test_each_request_has_its_own_deadline_and_patience_is_the_exchanges(tmp_path: Path) -> None:
    """A client asks again while its requests may still be answered."""

    async def main() -> None:
        async with relaying(tmp_path) as relay:
            late = (0, step("import time; time.sleep(30)"))
            _, early = await exchange(relay, late, timeout_s=0.3, collect=[0], want=1, patience_s=0.05)
            _, then = await exchange(relay, collect=[0], want=1, patience_s=5.0)

            assert (early, then) == ({}, {0: "timeout"})

    asyncio.run(main())


@pytest.mark.parametrize(
    ("action", "trouble"),
    [
        ("os._exit(3)", "closed"),
        ("os.write(3, b'\\xff' * 8)", "protocol"),
        ("os.write(3, b'\\0' * 8); os.write(3, b'\\0' * 8)", "protocol"),
    ],
)
def test_a_lane_in_trouble_says_so(tmp_path: Path, action: str, trouble: str) -> None:
    """It speaks twice, or nonsense, or not at all any more; the others go on."""

    async def main() -> None:
        async with relaying(tmp_path) as relay:
            _, first = await exchange(relay, (0, step(action)), (1, step(2)), collect=[0, 1], want=2, patience_s=5.0)
            _, then = await exchange(relay, collect=[0], want=1, patience_s=1.0)

            assert trouble in (first[0], then.get(0))
            assert first[1]["step"][0] == 2

    asyncio.run(main())


def test_an_opened_seat_is_a_fresh_worker(tmp_path: Path) -> None:
    """What the old one would have said is gone."""

    async def main() -> None:
        async with relaying(tmp_path, 1) as relay:
            await exchange(relay, (0, step("count = 9")))
            grants, ready = await exchange(relay, open=[0], collect=[0], want=1, patience_s=5.0)

            assert grants == [{"index": 0, "isolation": "fake"}]
            assert ready[0]["op"] == "ready"

    asyncio.run(main())


def test_a_seat_that_cannot_be_opened_is_refused_alone(tmp_path: Path) -> None:
    """With the reason."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            pool = node.pools.get((await node.pools.create(await wanted(node, tmp_path, 1), None)).id)
            (await pool.open(0)).discard("test")
            backend_of(node).refuse = {2}
            grants, _ = await exchange(node.pools.relay_of(pool), open=[0])
            assert grants == [{"index": 0, "reason": "no room in this test"}]
            await pool.close("deleted")
            with pytest.raises(PoolClosed):
                await exchange(Relay(pool))

    asyncio.run(main())


def test_large_requests_go_out_piece_by_piece(tmp_path: Path) -> None:
    """More than a socket takes at once."""

    async def main() -> None:
        async with relaying(tmp_path, 1) as relay:
            blob = b"x" * (2 << 20)
            _, answers = await exchange(relay, (0, step(blob)), collect=[0], want=1, patience_s=10.0)
            assert answers[0]["step"][0] == blob

    asyncio.run(main())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        frames.pack({"open": 3}),
        frames.pack({"open": [True]}),
        frames.pack({"open": [-1]}),
        frames.pack({"patience_s": "x"}),
        frames.pack({"patience_s": float("inf")}),
        frames.pack({}) + frames.pack({"worker": 0}),
        frames.pack({}) + b"\0\0",
        b"\xff" * 64,
    ],
)
def test_what_is_no_exchange_is_refused(body: bytes) -> None:
    """Before anything is done."""
    with pytest.raises(InvalidRequest, match="no exchange"):
        parse(body)


@given(st.binary(max_size=64))
def test_garbage_is_refused_as_a_request(body: bytes) -> None:
    """Whatever was sent."""
    with pytest.raises(InvalidRequest):
        parse(body)
