"""The way in and out."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.dashboard.looking import looking, words


def test_a_good_key_opens_the_pages_and_a_wrong_one_says_why(tmp_path: Path) -> None:
    """The cookie is for this server's pages alone, and no script reads it."""

    async def scenario() -> None:
        async with looking(tmp_path, keys=True) as here:
            assert "Key" in words(await here.get("/sign-in"))
            wrong = await here.post("/sign-in", key="hb_nonsense")
            assert (wrong.status, "not one of this server" in words(wrong)) == (401, True)
            long = await here.post("/sign-in", key="x" * 100_000)
            assert long.status == 413
            assert (await here.post("/sign-in", key=here.add_key("run"))).status == 403
            good = await here.post("/sign-in", key=here.add_key("read"))
            cookie = good.headers["set-cookie"]
            assert (good.status, good.headers["location"]) == (303, "/")
            assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/"))
            token = cookie.split("=", 1)[1].split(";")[0]
            assert (await here.get("/", cookie=token)).status == 200
            assert (await here.post("/sign-out", cookie=token)).status == 303
            assert (await here.get("/", cookie=token)).status == 303

    asyncio.run(scenario())


def test_where_nobody_needs_a_key_there_is_nothing_to_sign_in_to(tmp_path: Path) -> None:
    """Also for who tries."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            answer = await here.post("/sign-in", key="anything")
            assert (answer.status, answer.headers["location"], "set-cookie" in answer.headers) == (303, "/", False)

    asyncio.run(scenario())
