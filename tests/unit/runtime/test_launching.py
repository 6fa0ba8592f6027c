"""The node's side of the launcher: templates come up, and a launcher that was killed is replaced."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import IsolationUnavailable
from hotbed.runtime import hostview, roots
from hotbed.runtime.launching import Launching
from hotbed.runtime.linux import identity


def launched(test: Callable[[Launching], Awaitable[None]]) -> None:
    """Run a test with a launcher."""
    launching = Launching()

    async def run() -> None:
        launching.attach()
        await test(launching)
        await asyncio.get_running_loop().run_in_executor(None, launching.close)
        launching.close()

    asyncio.run(run())


def orders(root: Path, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plan and the config of a bare template."""
    root.parent.chmod(0o755)
    root.mkdir(exist_ok=True)
    plan = hostview.as_plan(hostview.describe(), {})
    ids = identity.mine()
    plan.update(root=str(root), ids={"uid": ids.uid, "gid": ids.gid, "count": ids.count}, **changes)
    config = {"preload": [], "programs": [], "packages": False, "attached": roots.attached(plan), "networks": 1}
    return plan, config


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory that a template of root's can reach with an id of its own."""
    tmp_path.chmod(0o755)  # a template of root's has to reach it with an id of its own
    return tmp_path


def test_template_comes_up_and_says_so(place: Path) -> None:
    """Its pid is the host's, and killing it is told."""

    async def test(launching: Launching) -> None:
        process = await launching.start(*orders(place / "root"))
        ready = await process.ready(30)

        assert ready["op"] == "ready" and Path(f"/proc/{process.pid}/ns/user").exists()
        process.kill("test")
        assert not process.is_alive()

    launched(test)


def test_what_the_host_refuses_is_isolation_unavailable(place: Path) -> None:
    """With the stage at which it was refused."""

    async def test(launching: Launching) -> None:
        with pytest.raises(IsolationUnavailable, match="root filesystem"):
            await launching.start(*orders(place / "root", trees=[["/nowhere/at/all", "/usr"]]))

    launched(test)


def test_killed_launcher_is_replaced(place: Path) -> None:
    """Its templates died with it; the next one needs another."""

    async def test(launching: Launching) -> None:
        process = await launching.start(*orders(place / "one"))
        await process.ready(30)
        os.kill(launching.pid, 9)
        await asyncio.wait_for(asyncio.shield(process.gone), 10)

        again = await launching.start(*orders(place / "two"))
        await again.ready(30)
        again.kill("test")

    launched(test)
