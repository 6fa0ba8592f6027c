"""The pages as an application: who is let in, and what happens otherwise."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from hotbed.dashboard.app import GET
from tests.unit.dashboard.looking import looking, words

WHOLE = [path for path, _ in GET if "{" not in path]


@pytest.mark.parametrize("path", WHOLE)
def test_every_page_is_drawn_on_an_empty_node(path: str, tmp_path: Path) -> None:
    """The first thing that anybody sees is a node on which nothing has happened yet."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            answer = await here.get(path)
            assert answer.status == 200
            assert "default-src 'none'" in answer.headers["content-security-policy"]

    asyncio.run(scenario())


def test_empty_pages_say_what_to_type_next(tmp_path: Path) -> None:
    """An empty table helps nobody."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            for path, hint in {
                "/": "hotbed run python",
                "/sandboxes": 'Sandbox("python")',
                "/pools": "RLPool(",
                "/rollouts": "hotbed run python",
                "/groups": "grade_batch(",
                "/waits": "hotbed demo",
                "/keys": "hotbed keys list",
            }.items():
                assert hint in words(await here.get(path)), path

    asyncio.run(scenario())


def test_who_has_not_signed_in_sees_nothing(tmp_path: Path) -> None:
    """Every page leads to the way in; a part of one takes its whole page there."""

    async def scenario() -> None:
        async with looking(tmp_path, keys=True) as here:
            for path in [*WHOLE, "/rollouts/x", "/rollouts/x/stdout", "/groups/x", "/rollouts/nowhere/at/all"]:
                answer = await here.get(path)
                assert (answer.status, answer.headers.get("location"), answer.body) == (303, "/sign-in", b""), path
            part = await here.get("/parts/state", **{"hx-request": "true"})
            assert (part.status, part.headers["hx-redirect"]) == (401, "/sign-in")
            assert (await here.post("/rollouts/x/replay")).status == 303
            assert (await here.get("/static/hotbed.css")).status == 200

    asyncio.run(scenario())


def test_a_tenant_sees_no_counters_of_the_node(tmp_path: Path) -> None:
    """How much others do is not its business."""

    async def scenario() -> None:
        async with looking(tmp_path, keys=True) as here:
            cookie = await here.sign_in("read")
            home = await here.get("/", cookie=cookie)
            assert "Tenant acme" in words(home)
            assert b"Outcomes" not in home.body
            assert b"/keys" not in home.body
            for path in ("/keys", "/plots.json"):
                assert (await here.get(path, cookie=cookie)).status == 403
            admin = await here.sign_in("admin", tenant="ops")
            assert "Outcomes" in words(await here.get("/", cookie=admin))
            assert (await here.get("/plots.json", cookie=admin)).json["t"] == []

    asyncio.run(scenario())


def test_what_goes_wrong_is_a_page(tmp_path: Path) -> None:
    """With the words of the error; in a part, without what is around it."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            lost = await here.get("/rollouts/nope")
            assert lost.status == 404
            assert "unknown_rollout" in words(lost)
            part = await here.get("/groups/nope", **{"hx-request": "true"})
            assert (part.status, b"<html" in part.body) == (404, False)
            assert (await here.get("/rollouts/a/b/c")).status == 404
            stranger = await here.get("/", host="evil.example")
            assert (stranger.status, "localhost" in words(stranger)) == (400, True)
            assert b"<nav" not in stranger.body

    asyncio.run(scenario())


def test_what_was_not_foreseen_is_logged_and_told_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A traceback would tell a stranger about the node."""

    def broken(self: Any) -> Any:
        raise RuntimeError("secret detail")

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            monkeypatch.setattr(type(here.node), "health", broken)
            answer = await here.get("/")
            assert answer.status == 500
            assert b"secret" not in answer.body

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert "secret detail" in caplog.text


def test_a_change_from_another_site_is_refused(tmp_path: Path) -> None:
    """With and without keys: signing somebody in or out, or running a program, from a page of a stranger."""

    async def scenario(keys: bool) -> None:
        async with looking(tmp_path / str(keys), keys=keys) as here:
            cookie = await here.sign_in("admin") if keys else ""
            for path in ("/sign-in", "/sign-out", "/rollouts/x/replay"):
                answer = await here.post(path, cookie=cookie, headers={"origin": "http://evil.example"})
                assert answer.status == 403, path

    for keys in (True, False):
        asyncio.run(scenario(keys))
