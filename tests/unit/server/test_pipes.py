"""Pipes on the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

from hotbed.server.pipes import read_pipe, write_pipe

BIG = os.urandom(1 << 20)


async def source(*chunks: bytes) -> AsyncIterator[bytes]:
    """Chunks, one a turn of the loop."""
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk


def test_more_than_a_pipe_holds_goes_through_one() -> None:
    """Both ends wait for each other, on one loop."""

    async def scenario() -> bytes:
        reader, writer = os.pipe()
        forever = asyncio.ensure_future(asyncio.sleep(3600, 0))
        writing = asyncio.ensure_future(write_pipe(writer, source(BIG, b"end"), until=forever))
        data = b"".join([chunk async for chunk in read_pipe(reader)])
        await writing
        forever.cancel()
        return data

    assert asyncio.run(scenario()) == BIG + b"end"


def test_a_reader_that_fails_ends_the_writing_but_not_the_reading_of_the_request() -> None:
    """Its answer would never be seen otherwise."""
    taken: list[int] = []

    async def counted() -> AsyncIterator[bytes]:
        for number in range(3):
            taken.append(number)
            yield BIG

    async def scenario() -> None:
        reader, writer = os.pipe()

        async def refuse() -> int:
            await asyncio.sleep(0.01)
            os.close(reader)
            return 0

        until = asyncio.ensure_future(refuse())
        await asyncio.wait_for(write_pipe(writer, counted(), until=until), 5)

    asyncio.run(scenario())
    assert taken == [0, 1, 2]
