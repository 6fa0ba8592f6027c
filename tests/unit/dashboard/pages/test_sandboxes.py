"""Every sandbox that lives."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hotbed.dashboard.pages import sandboxes
from hotbed.node.leases import Lease
from hotbed.node.tenants import DEFAULT_TIERS, Tenant
from hotbed.wire.sandboxes import CreateSandbox
from tests.unit.dashboard.looking import looking, words


def test_sandboxes_are_counted_by_template_and_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is idle until it is used, and ending until it is gone. Too many to draw are counted."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            node = here.node
            made = [await node.create_sandbox(CreateSandbox(template="python", label="<b>x"), None) for _ in range(3)]
            slow, may_end = type(node.sessions.get(made[0].id).held.box), asyncio.Event()
            kill = slow.kill

            async def kill_later(box: Any) -> None:
                await may_end.wait()
                await kill(box)

            monkeypatch.setattr(slow, "kill", kill_later)
            node.sessions.get(made[0].id).active = 1
            node.sessions.get(made[1].id).held.discard("deleted")
            page = await here.get("/sandboxes")
            assert "python 1 1 – 1" in words(page)
            assert "3 live of 8 at once" in words(page)
            assert b"&lt;b&gt;x" in page.body
            assert page.body.count(b'<i class="cell') == 3
            node.sessions.get(made[0].id).active = 0
            monkeypatch.setattr(sandboxes, "CELLS", 1)
            part = await here.get("/parts/grid")
            assert part.body.count(b'<i class="cell') == 1
            assert "2 more are counted above" in words(part)
            may_end.set()

    asyncio.run(scenario())


def test_a_tenant_sees_its_own(tmp_path: Path) -> None:
    """Neither the squares nor the counts of another's."""

    async def scenario() -> None:
        async with looking(tmp_path, keys=True) as here:
            lease = Lease(tenant=Tenant("bob", DEFAULT_TIERS["pro"]))
            made = await here.node.create_sandbox(CreateSandbox(template="python"), lease)
            mine = await here.get("/sandboxes", cookie=await here.sign_in("read"))
            assert "No sandbox lives" in words(mine)
            for cookie in (await here.sign_in("read", tenant="bob"), await here.sign_in("admin")):
                assert made.id.encode() in (await here.get("/sandboxes", cookie=cookie)).body

    asyncio.run(scenario())
