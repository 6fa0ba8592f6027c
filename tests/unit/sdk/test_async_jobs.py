"""Jobs, asyncio face."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.errors import DeadlineExceeded
from hotbed.sdk.async_sandbox import AsyncSandbox
from hotbed.sdk.client import Client


def test_they_work_as_in_the_blocking_face(client: Client) -> None:
    """Every method once."""

    async def run() -> None:
        async with AsyncSandbox("python", client=client) as sandbox:
            job = await sandbox.start_job(command="echo one; read x", stdin="go\n")
            assert (await job.wait(10)).exit_code == 0
            assert (await job.output(wait_seconds=5)).events[0].data == "one\n"
            assert [other.id for other in await sandbox.jobs()] == [job.id]
            slow = await sandbox.start_job(command="sleep 60")
            with pytest.raises(DeadlineExceeded):
                await slow.wait(0.05)
            await slow.signal(9)
            assert (await slow.wait(10)).signal == 9
            assert (await slow.poll()).state == "ended"
            await slow.kill()
            assert repr(job) == f"AsyncJob({job.id!r})"

    asyncio.run(run())
