"""Local ports that lead inside, asyncio face. The fake backend's inside is this host."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.sdk.addresses import Address
from hotbed.sdk.async_sandbox import AsyncSandbox
from hotbed.sdk.client import Client
from hotbed.sdk.transport import Link
from hotbed.sdk.tunnels import AsyncPortForward

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


def descriptors() -> int:
    """How many this process has open."""
    return len(os.listdir("/proc/self/fd"))


async def settled(count: int) -> None:
    """Wait until there are so many again, without anybody collecting garbage."""
    deadline = time.monotonic() + 10
    while descriptors() != count and time.monotonic() < deadline:
        await asyncio.sleep(0.005)
    assert descriptors() == count


def test_closing_waits_for_nobody_who_does_not_read(client: Client) -> None:
    """Neither end of a connection that is full outlives the forward."""

    async def run() -> None:
        inside = socket.create_server(("127.0.0.1", 0))
        inside.setblocking(False)
        loop = asyncio.get_running_loop()
        async with AsyncSandbox("python", client=client) as sandbox:
            forward = await sandbox.port_forward(inside.getsockname()[1])
            with socket.create_connection((forward.host, forward.port)) as ours:
                theirs, _ = await loop.sock_accept(inside)
                before = descriptors()
                for end in (ours, theirs):
                    end.setblocking(False)
                    with pytest.raises(asyncio.TimeoutError):
                        await asyncio.wait_for(loop.sock_sendall(end, bytes(32 << 20)), 0.5)
                await forward.close()
                await settled(before - 3)  # what listens, the local connection and its tunnel
                theirs.close()
        inside.close()

    asyncio.run(run())


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Link]:
    """A node that lets everybody come and says nothing."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "silent.sock"))
        listener.listen()
        yield Link(Address(unix_path=str(tmp_path / "silent.sock")))


# In round 2 asyncio has accepted and made no transport yet; it then fails in its own task and leaves the socket to the
# garbage collector (CPython 3.11, `_accept_connection2` of a server that was closed meanwhile).
@pytest.mark.parametrize("rounds", [0, 1, 3, 4, 5, 6, 7])
def test_a_connection_that_is_just_being_accepted_ends_with_the_forward(silent: Link, rounds: int) -> None:
    """However far it has come."""

    async def run() -> None:
        before = descriptors()
        forward = AsyncPortForward(silent, "s", 80)
        await forward._listen("127.0.0.1", 0)
        with socket.create_connection((forward.host, forward.port)):
            for _ in range(rounds):
                await asyncio.sleep(0)
            await forward.close()
            await settled(before + 1)
        await settled(before)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


@pytest.mark.parametrize("rounds", range(6))
def test_whoever_is_cancelled_while_it_opens_leaves_no_server(silent: Link, rounds: int) -> None:
    """It would take connections until the loop ends."""

    async def run() -> None:
        before = descriptors()
        forward = AsyncPortForward(silent, "s", 80)

        async def use() -> None:
            await forward._listen("127.0.0.1", 0)
            await forward.close()

        using = asyncio.get_running_loop().create_task(use())
        for _ in range(rounds):
            await asyncio.sleep(0)
        using.cancel()
        await asyncio.gather(using, return_exceptions=True)
        await settled(before)

    asyncio.run(run())
