"""Work that lasts no longer than its connection."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.server.connection import Emit, Gone, Stream, while_connected
from tests.unit.server.asking import Asked


def test_work_that_ends_first_gives_its_result_or_its_error() -> None:
    """The connection was only watched."""

    async def fail() -> None:
        raise ValueError("mine")

    async def scenario() -> None:
        asked = Asked("GET", "/", [], {})
        assert await while_connected(asked.receive, asyncio.sleep(0, "done")) == "done"
        with pytest.raises(ValueError, match="mine"):
            await while_connected(asked.receive, fail())

    asyncio.run(scenario())


def test_work_is_cancelled_and_waited_for_when_the_client_hangs_up() -> None:
    """Its clean-up has run by the time we go on."""
    cleaned: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    async def scenario() -> None:
        asked = Asked("GET", "/", [], {})
        asyncio.get_running_loop().call_soon(asked.hang_up)
        with pytest.raises(Gone):
            await while_connected(asked.receive, work())

    asyncio.run(scenario())
    assert cleaned == [True]


@pytest.mark.parametrize(("headers", "length"), [(None, None), ({"content-length": "2"}, "2")])
def test_a_stream_announces_a_length_only_when_it_has_one(headers: dict[str, str] | None, length: str | None) -> None:
    """Starlette would announce that of the empty body it started from."""

    async def produce(emit: Emit) -> None:
        await emit(b"o")
        await emit(b"k")

    async def scenario() -> None:
        asked = Asked("GET", "/", b"", {})
        stream = Stream(produce, media_type="text/plain", headers=headers)
        await stream(asked.scope, asked.receive, asked.send)
        assert asked.answer.body == b"ok"
        assert asked.answer.headers.get("content-length") == length

    asyncio.run(scenario())
