"""Keys and tenants, for operators."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.dashboard.looking import looking, words


def test_an_operator_sees_who_has_keys_and_no_secret(tmp_path: Path) -> None:
    """Which are good, which are not, and who has asked."""

    async def scenario() -> None:
        async with looking(tmp_path, keys=True) as here:
            text = here.add_key("run", "read", tenant="bob")
            key_id, secret = text.split("_")[1:]
            cookie = await here.sign_in("admin", tenant="ops")
            assert here.store is not None and here.house.tenants is not None
            here.house.tenants.get("bob", "pro")
            here.store.revoke(key_id)
            page = await here.get("/keys", cookie=cookie)
            told = words(page)
            assert f"{key_id} bob pro read, run" in told
            assert "it was revoked" in told
            assert "bob pro 0 256 0" in told
            assert secret.encode() not in page.body

    asyncio.run(scenario())
