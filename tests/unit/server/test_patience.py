"""A request has limited time and size in coming, over a real connection."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hotbed.server import patience
from hotbed.server.serving import Server, server_config

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the size of the body."""
    body = await Request(scope, receive).body()
    await Response(str(len(body)))(scope, receive, send)


@asynccontextmanager
async def serving(path: Path) -> AsyncIterator[str]:
    """A server on a Unix socket."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    config: uvicorn.Config = server_config(app)
    config.load()
    server = Server(config)
    task = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]))
    try:
        yield str(path)
    finally:
        server.should_exit = True
        await task


def talk(path: Path, said: Talk) -> Any:
    """What comes of talking to it."""

    async def run() -> Any:
        async with serving(path / "s") as where:
            reader, writer = await asyncio.open_unix_connection(where)
            try:
                return await asyncio.wait_for(said(reader, writer), 10)
            finally:
                writer.close()

    return asyncio.run(run())


def test_a_head_without_end_is_refused(tmp_path: Path) -> None:
    """Before it fills any memory."""

    async def said(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        lines = b"".join(b"x-%d: %s\r\n" % (number, b"y" * 1000) for number in range(80))
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n" + lines)
        return await reader.readline()

    assert b" 431 " in talk(tmp_path, said)


@pytest.mark.parametrize("drip", [b"", b"GET / HTTP/1.1\r\nx-"])
def test_a_head_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, drip: bytes) -> None:
    """Also when a byte of it comes now and then."""
    monkeypatch.setattr(patience, "HEAD_S", 0.3)

    async def said(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(drip)
        for _ in range(3 if drip else 0):
            await asyncio.sleep(0.02)
            writer.write(b"x")
        return await reader.read()

    assert b" 408 " in talk(tmp_path, said)


def test_a_body_that_stops_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that goes on slowly is not."""
    monkeypatch.setattr(patience, "BODY_S", 0.2)

    async def said(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n")
        for _ in range(5):
            await asyncio.sleep(0.1)
            writer.write(b"x")
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(1) == b"5"
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nxx")
        return await reader.read()

    assert b" 200 " not in talk(tmp_path, said)


def test_a_connection_that_is_kept_may_be_silent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Between two requests there is nothing due."""
    monkeypatch.setattr(patience, "HEAD_S", 0.1)
    monkeypatch.setattr(patience, "BODY_S", 0.1)

    async def said(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> list[bytes]:
        lines = []
        for _ in range(3):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            lines.append(await reader.readline())
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(1)
            await asyncio.sleep(0.3)
        return lines

    assert [b" 200 " in line for line in talk(tmp_path, said)] == [True] * 3
