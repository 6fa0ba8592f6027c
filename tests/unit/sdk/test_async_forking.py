"""Live operations of a kept sandbox, for asyncio."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from hotbed.errors import SandboxGone
from hotbed.sdk import async_forking, forking
from hotbed.sdk.async_sandbox import AsyncSandbox
from hotbed.sdk.client import Client


@pytest.mark.parametrize(
    ("blocking", "twin"),
    [
        (forking.ForkingSandbox, async_forking.AsyncForkingSandbox),
        (forking.ForkGroup, async_forking.AsyncForkGroup),
        (forking.SandboxSnapshot, async_forking.AsyncSandboxSnapshot),
    ],
)
def test_both_faces_have_the_same_methods(blocking: Any, twin: Any) -> None:
    """With the same parameters."""
    names = {name for name in vars(blocking) if not name.startswith("_")}

    assert names == {name for name in vars(twin) if not name.startswith("_")}
    for name in names:
        if callable(getattr(blocking, name)):
            assert list(inspect.signature(getattr(blocking, name)).parameters) == list(
                inspect.signature(getattr(twin, name)).parameters
            )


def test_the_same_works_on_a_loop(client: Client) -> None:
    """Every method once."""

    async def episode() -> None:
        async with AsyncSandbox("python", client=client) as parent:
            await parent.upload_bytes("/work/f", b"kept\n")
            (child,) = await parent.fork()
            assert await child.download("/work/f") == b"kept\n"
            await child.close()
            async with await parent.fork_group(3) as group:
                results = await group.exec_each(command="cat /work/f")
                assert [result.stdout for result in results if result] == ["kept\n"] * 3
                await group[1].close()
                found = await group.map(lambda _, one: one.exec("1"), on_infra_error="none")
                assert [item is None for item in found] == [False, True, False]
                with pytest.raises(SandboxGone):
                    await group.exec_each("1")
            assert (await parent.suspend()).state == "suspended" and (await parent.resume()).state == "running"
            async with await parent.snapshot() as kept:
                async with AsyncSandbox.from_snapshot(kept, client=client) as other:
                    assert await other.download("/work/f") == b"kept\n"
            await (await parent.snapshot(end=True)).free()

    asyncio.run(episode())
    assert (client.sandboxes(), client.snapshots()) == ((), ())
