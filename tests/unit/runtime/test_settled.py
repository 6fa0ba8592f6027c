"""A future that others wait for too."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.errors import SandboxFailed
from hotbed.runtime.settled import settled


def test_what_it_comes_to_is_told_to_all_who_wait() -> None:
    """One that was done before, too."""

    async def run() -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        both = asyncio.gather(settled(future, 5), settled(future, 5))
        await asyncio.sleep(0)
        future.set_result(7)
        assert list(await both) == [7, 7]
        assert await settled(future, 0) == 7

    asyncio.run(run())


def test_its_failure_is_raised() -> None:
    """As itself."""

    async def run() -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_exception, SandboxFailed("no"))
        with pytest.raises(SandboxFailed, match="no"):
            await settled(future, 5)

    asyncio.run(run())


def test_it_goes_on_when_nobody_waits_any_more() -> None:
    """Who waited long enough, and who was cancelled."""

    async def run() -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        with pytest.raises(asyncio.TimeoutError):
            await settled(future, 0.01)
        waiting = asyncio.ensure_future(settled(future, 5))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not future.done()
        future.set_result(1)

    asyncio.run(run())
