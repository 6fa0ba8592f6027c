"""Work that lasts no longer than its connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hotbed.server.connection import Emit, Gone, Stream, until_hung_up, while_connected
from tests.unit.server.asking import Asked

EITHER = pytest.mark.parametrize("watched", [while_connected, until_hung_up])


@EITHER
def test_work_that_ends_first_gives_its_result_or_its_error(watched: Any) -> None:
    """The connection was only watched."""

    async def fail() -> None:
        raise ValueError("mine")

    async def scenario() -> None:
        asked = Asked("GET", "/", [], {})
        assert await watched(asked.receive, asyncio.sleep(0, "done")) == "done"
        with pytest.raises(ValueError, match="mine"):
            await watched(asked.receive, fail())

    asyncio.run(scenario())


@EITHER
def test_work_is_cancelled_and_waited_for_when_the_client_hangs_up(watched: Any) -> None:
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
            await watched(asked.receive, work())

    asyncio.run(scenario())
    assert cleaned == [True]


def test_a_cancellation_that_is_not_the_clients_passes_through() -> None:
    """A node that shuts down cancels too."""

    async def scenario() -> None:
        asked = Asked("GET", "/", [], {})
        task = asyncio.ensure_future(until_hung_up(asked.receive, asyncio.sleep(3600)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


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
