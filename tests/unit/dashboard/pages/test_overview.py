"""The node at a glance."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hotbed.node.rollouts import run_rollout
from hotbed.wire.execs import RolloutRequest
from tests.unit.dashboard.looking import looking, words


def test_it_tells_what_has_happened(tmp_path: Path) -> None:
    """Counts, outcomes, how full it is; the part that updates tells the same."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            for status in (0, 0, 3):
                await run_rollout(here.node, RolloutRequest(template="python", command=f"exit {status}"), None)
            for path in ("/", "/parts/state"):
                told = words(await here.get(path))
                assert "Rollouts 3" in told
                assert "ok 2 exit 1" in told
                assert "of 8 at once" in told
            assert b"<html" not in (await here.get("/parts/state")).body

    asyncio.run(scenario())


def test_plots_have_a_table_with_their_numbers(tmp_path: Path) -> None:
    """For who does not see them; a span that does not exist is the usual one."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            for _ in range(100):
                here.house.history.sample()
            columns = (await here.get("/plots.json?span=nonsense")).json
            assert len(columns["t"]) == len(columns["rollout_ms_p99"]) == 100
            home = await here.get("/?span=15m")
            assert 14 <= home.body.count(b"<tr><th scope=") <= 20
            assert "first is taken a minute after" not in words(home)
            assert (await here.get("/plots.json?span=24h")).json["t"] != columns["t"]

    asyncio.run(scenario())
