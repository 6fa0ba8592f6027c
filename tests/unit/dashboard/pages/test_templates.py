"""What sandboxes are forked from."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hotbed.wire.templates import CreateTemplate
from tests.unit.dashboard.looking import looking, words


def test_a_tenant_sees_the_catalog_and_its_own(tmp_path: Path) -> None:
    """Others' names may be telling."""

    async def scenario() -> None:
        async with looking(tmp_path, keys=True) as here:
            await here.node.templates.create(CreateTemplate(name="bob--chess", preload=("json",)))
            mine = words(await here.get("/templates", cookie=await here.sign_in("read")))
            assert ("python-numpy" in mine, "chess" in mine) == (True, False)
            for cookie in (await here.sign_in("read", tenant="bob"), await here.sign_in("admin")):
                told = words(await here.get("/templates", cookie=cookie))
                assert "bob--chess Live host" in told

    asyncio.run(scenario())
