"""The asyncio face of a kept sandbox."""

from __future__ import annotations

import asyncio
from io import BytesIO
from pathlib import Path

import pytest

from hotbed.errors import FileMissing, SandboxGone
from hotbed.sdk.async_sandbox import AsyncSandbox
from hotbed.sdk.client import Client


def test_episode_works_as_in_the_blocking_face(client: Client, tmp_path: Path) -> None:
    """Every method once."""

    async def episode() -> None:
        async with AsyncSandbox("python", client=client) as sandbox:
            first = sandbox.id
            await sandbox.upload_bytes("/work/f", b"abc")
            assert (await sandbox.exec(command="cat /work/f")).stdout == "abc"
            assert await sandbox.download("/work/f") == b"abc"
            await sandbox.upload("/work/g", BytesIO(b"x" * 700_000))
            await sandbox.download_to("/work/g", tmp_path / "g")
            assert (tmp_path / "g").stat().st_size == 700_000
            await sandbox.mkdir("/work/d")
            await sandbox.upload_dir(tmp_path, "/work/d")
            assert [entry.name for entry in await sandbox.list_dir("/work/d")] == ["g"]
            assert (await sandbox.stat("/work/d/g")).size == 700_000
            assert await sandbox.download_dir("/work/d", tmp_path / "back") == ()
            await sandbox.remove("/work/d")
            other = await AsyncSandbox.attach(client, sandbox.id)
            assert (other.template, other.warm_hit, other.seed) == ("python", sandbox.warm_hit, sandbox.seed)
            await sandbox.reset()
            assert sandbox.id != first
            with pytest.raises(FileMissing):
                await sandbox.download("/work/f")
            assert repr(sandbox) == f"AsyncSandbox('python', id={sandbox.id!r})"
        await sandbox.close()
        with pytest.raises(SandboxGone):
            await sandbox.exec("1")

    asyncio.run(episode())
    assert client.sandboxes() == ()


def test_tasks_that_use_it_first_fork_it_once(client: Client) -> None:
    """First use may come from several at once."""

    async def several() -> None:
        sandbox = AsyncSandbox("python", client=client)
        results = await asyncio.gather(*(sandbox.exec("print(1)") for _ in range(4)))
        assert [result.stdout for result in results] == ["1\n"] * 4
        assert len(client.sandboxes()) == 1
        await sandbox.close()

    asyncio.run(several())


def test_output_is_heard_on_the_loop(client: Client) -> None:
    """A callback may touch what belongs to the loop."""

    async def listen() -> list[bool]:
        loop = asyncio.get_running_loop()
        heard: list[bool] = []
        async with AsyncSandbox("python", client=client) as sandbox:
            await sandbox.exec(command="echo a", on_output=lambda *_: heard.append(asyncio.get_running_loop() is loop))
        return heard

    assert asyncio.run(listen()) == [True]
