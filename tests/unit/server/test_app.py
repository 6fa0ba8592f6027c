"""The composition root."""

from __future__ import annotations

import asyncio
import re

from hotbed.server.app import HANDLERS
from hotbed.wire.routes import ROUTES
from tests.unit.server.asking import ask, served


def test_every_route_of_the_table_is_served() -> None:
    """What the client can call, the server answers."""
    assert {route.name for route, _ in HANDLERS} == {route.name for route in ROUTES}


def test_every_path_is_served_as_itself() -> None:
    """Whatever the order in which they are tried: none is taken for another that it looks like."""
    methods: dict[str, set[str]] = {}
    for route, _ in HANDLERS:
        methods.setdefault(route.path, set()).add(route.method)

    async def scenario() -> None:
        async with served() as (_, app):
            for path, possible in methods.items():
                wrong = await ask(app, "BREW", re.sub("{[a-z_]+}", "x", path))
                assert wrong.status == 405 and possible <= set(wrong.headers["allow"].split(", ")), path

    asyncio.run(scenario())


def test_an_unknown_path_and_a_wrong_method_are_answered_in_our_words() -> None:
    """Both envelopes of the published client, as everywhere."""

    async def scenario() -> None:
        async with served() as (_, app):
            unknown = await ask(app, "GET", "/v1/nope")
            assert (unknown.status, unknown.json["error_code"], unknown.json["code"]) == (404, "not_found", "not_found")
            wrong = await ask(app, "PATCH", "/v1/sandboxes")
            assert (wrong.status, wrong.headers["allow"]) == (405, "GET, POST")
            assert (await ask(app, "GET", "/v1/health/")).status == 404

    asyncio.run(scenario())


def test_what_is_looked_up_is_found_as_a_pattern_would() -> None:
    """An id is a whole word, whatever it is; there is none without one, and nothing below what is not served."""

    async def scenario() -> None:
        async with served() as (_, app):
            for name in ("x", "{id}", "delete-me", " "):
                assert "no sandbox" in (await ask(app, "GET", f"/v1/sandboxes/{name}")).json["message"], name
            assert "no sandbox" in (await ask(app, "POST", "/v1/sandboxes/{id}/exec", {"code": ""})).json["message"]
            for path in ("/v1/sandboxes/", "/v1/sandboxes//exec", "/v1/sandboxes/x/exec/", "/v2/sandboxes/x", "/v1"):
                assert "nothing is served" in (await ask(app, "POST", path, {})).json["message"], path

    asyncio.run(scenario())
