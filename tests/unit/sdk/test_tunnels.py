"""Local ports that lead inside, asyncio face. The fake backend's inside is this host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.sdk.async_sandbox import AsyncSandbox
from hotbed.sdk.client import Client

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@asynccontextmanager
async def forwarded(client: Client, serve: Serve) -> AsyncIterator[tuple[str, int]]:
    """Where to connect to reach what serves inside."""

    async def whole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(reader, writer)
        writer.close()

    inside = await asyncio.start_server(whole, "127.0.0.1", 0)
    async with AsyncSandbox("python", client=client) as sandbox:
        async with await sandbox.port_forward(inside.sockets[0].getsockname()[1]) as forward:
            assert forward.url == f"http://{forward.address}" == f"http://{forward.host}:{forward.port}"
            yield forward.host, forward.port
    inside.close()


def test_a_reply_after_the_end_of_the_question_arrives(client: Client) -> None:
    """Each direction ends for itself."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        question = await reader.read()
        await asyncio.sleep(0.05)
        writer.write(question[::-1])
        await writer.drain()

    async def run() -> bytes:
        async with forwarded(client, serve) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"abc")
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            return answer

    assert asyncio.run(run()) == b"cba"


def test_an_inside_that_ends_its_side_first_still_listens(client: Client) -> None:
    """The other way round."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"last word")
        writer.write_eof()
        heard.append(await reader.read())

    async def run() -> bytes:
        async with forwarded(client, serve) as address:
            reader, writer = await asyncio.open_connection(*address)
            word = await asyncio.wait_for(reader.read(), 10)
            writer.write(b"still here")
            writer.write_eof()
            while not heard:
                await asyncio.sleep(0.005)
            writer.close()
            return word

    assert asyncio.run(run()) == b"last word"
    assert heard == [b"still here"]


def test_megabytes_go_both_ways(client: Client) -> None:
    """Neither direction waits for the other."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()

    async def run() -> bytes:
        async with forwarded(client, serve) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(bytes(range(256)) * 8192)
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            return answer

    assert asyncio.run(run()) == bytes(range(256)) * 8192


def test_a_port_where_nothing_listens_ends_the_connection(client: Client) -> None:
    """As it would without us."""

    async def run() -> bytes:
        async with AsyncSandbox("python", client=client) as sandbox, await sandbox.port_forward(1) as forward:
            reader, writer = await asyncio.open_connection(forward.host, forward.port)
            got = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            await forward.close()
            return got

    assert asyncio.run(run()) == b""


@pytest.mark.parametrize("port", [0, 70000, "80"])
def test_what_is_no_port_is_refused(client: Client, port: Any) -> None:
    """Here, before anything listens."""

    async def run() -> None:
        async with AsyncSandbox("python", client=client) as sandbox:
            await sandbox.port_forward(port)

    with pytest.raises(InvalidRequest, match="port"):
        asyncio.run(run())
