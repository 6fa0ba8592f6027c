"""Groups and their rewards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import quote

from tests.unit.dashboard.looking import looking, words
from tests.unit.node.ledger.entries import entry


def test_groups_are_listed_with_their_rewards(tmp_path: Path) -> None:
    """A page at a time, each with its histogram in words, too."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            here.note(
                entry(n, kind="grade", group_id=f"step/{n // 8:02} <i>", reward=float(n % 4 == 0), at=1000.0 + n)
                for n in range(8 * 40)
            )
            first = await here.get("/groups")
            assert first.body.count(b'<svg class="histogram"') == 30
            assert b"Rewards: 6 \xc3\x97 0, 2 \xc3\x97 1" in first.body
            assert b"<i>" not in first.body.replace(b'<i class="cell', b"")
            older = first.body.decode().split('href="/groups?before=')[1].split('"')[0]
            rest = await here.get(f"/groups?before={older}")
            assert rest.body.count(b'<svg class="histogram"') == 10
            assert "No older group" in words(await here.get("/groups?before=1"))
            one = await here.get(f"/groups/{quote('step/39 <i>', safe='')}")
            assert "Members 8 Mean reward 0.250" in words(one)
            assert one.body.count(b'href="/rollouts/rollout_') == 8

    asyncio.run(scenario())


def test_a_tenants_groups_are_its_own(tmp_path: Path) -> None:
    """Another's never was."""

    async def scenario() -> None:
        async with looking(tmp_path, keys=True) as here:
            here.note(entry(n, kind="grade", group_id="g", tenant="bob", reward=1.0) for n in range(4))
            mine = await here.sign_in("read")
            assert "Nothing was graded" in words(await here.get("/groups", cookie=mine))
            assert (await here.get("/groups/g", cookie=mine)).status == 404
            for cookie in (await here.sign_in("read", tenant="bob"), await here.sign_in("admin")):
                assert "Mean reward 1.000" in words(await here.get("/groups/g", cookie=cookie))

    asyncio.run(scenario())


def test_a_node_without_a_ledger_says_so(tmp_path: Path) -> None:
    """An empty list would be a lie."""

    async def scenario() -> None:
        async with looking(tmp_path, ledger=False) as here:
            for path in ("/groups", "/rollouts"):
                assert "keeps no ledger" in words(await here.get(path))

    asyncio.run(scenario())
