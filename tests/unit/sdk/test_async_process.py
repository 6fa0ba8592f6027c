"""Talking to a program, asyncio face."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.errors import DeadlineExceeded, NotSupported
from hotbed.sdk.async_sandbox import AsyncSandbox
from hotbed.sdk.client import Client


def test_it_works_as_in_the_blocking_face(client: Client) -> None:
    """Every method once."""

    async def talk() -> None:
        async with AsyncSandbox("python", client=client) as sandbox:
            async with await sandbox.process(command="while read x; do echo got $x; done; echo bye >&2") as process:
                await process.write("one\n")
                assert await process.read(10) == (1, b"got one\n")
                with pytest.raises(DeadlineExceeded):
                    await process.read(0.05)
                await process.end_input()
                assert [piece async for piece in process] == [(2, b"bye\n")]
                assert (await process.wait()).ok and process.ended
            process = await sandbox.process(command="trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done")
            assert await process.read(10) == (1, b"up\n")
            await process.signal(15)
            assert (await process.wait(10)).exit_code == 7
            process = await sandbox.process(command="sleep 60")
            await process.kill()
            assert (await process.wait(10)).status == "signal"
            await process.resize(1, 1)
            await process.close()
            with pytest.raises(NotSupported):
                await sandbox.process(command="true", terminal=(24, 80))

    asyncio.run(talk())


def test_many_at_once_need_no_threads(client: Client) -> None:
    """A task each."""

    async def one(sandbox: AsyncSandbox, number: int) -> bytes:
        async with await sandbox.process(command="cat") as process:
            await process.write(b"%d" % number * 50_000)
            await process.end_input()
            return b"".join([data async for _, data in process])

    async def all_of_them() -> list[bytes]:
        async with AsyncSandbox("python", client=client) as sandbox:
            return await asyncio.gather(*(one(sandbox, number) for number in range(20)))

    assert asyncio.run(all_of_them()) == [b"%d" % number * 50_000 for number in range(20)]


def test_reading_and_writing_from_two_tasks(client: Client) -> None:
    """One hears for both."""

    async def run() -> bytes:
        async with AsyncSandbox("python", client=client) as sandbox, await sandbox.process(command="cat") as process:

            async def read() -> bytes:
                return b"".join([data async for _, data in process])

            async def write() -> None:
                await process.write(bytes(1_000_000))
                await process.end_input()

            got, _ = await asyncio.gather(read(), write())
            return got

    assert asyncio.run(run()) == bytes(1_000_000)
