"""The dashboard beside the API."""

from __future__ import annotations

import asyncio
from pathlib import Path

from starlette.types import ASGIApp

from hotbed.server.app import make_app
from hotbed.server.beside import Beside
from tests.unit.dashboard.looking import HERE, looking
from tests.unit.server.asking import ask


def test_a_browser_gets_pages_and_a_client_the_api(tmp_path: Path) -> None:
    """By the path; and what comes with a key in its header is no browser."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            app: ASGIApp = Beside(make_app(here.node), here.house)
            both = await asyncio.gather(*(ask(app, "GET", path, headers=HERE) for path in ("/", "/rollouts")))
            assert [answer.headers["content-type"] for answer in both] == ["text/html; charset=utf-8"] * 2
            assert (await ask(app, "GET", "/v1/health")).json["status"] == "ok"
            for path in ("/nothing", "/v1/nothing"):
                assert (await ask(app, "GET", path, headers=HERE)).json["code"] == "not_found"
            keyed = await ask(app, "GET", "/rollouts", headers={**HERE, "authorization": "Bearer x"})
            assert keyed.json["code"] == "not_found"

    asyncio.run(scenario())
