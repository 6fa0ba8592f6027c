"""Templates over HTTP."""

from __future__ import annotations

import asyncio

from tests.unit.server.asking import ask, served


def test_a_template_is_made_once_and_found_by_name() -> None:
    """Listed beside the built-in ones."""

    async def scenario() -> None:
        async with served() as (_, app):
            made = await ask(app, "POST", "/v1/templates", {"name": "mine", "env": {"A": "b"}})
            assert (made.status, made.json["phase"], made.json["id"]) == (201, "Live", "mine")
            assert (await ask(app, "GET", "/v1/templates/mine")).json == made.json
            rows = (await ask(app, "GET", "/v1/templates")).json["templates"]
            assert [row["name"] for row in rows] == ["python", "python-numpy", "python-ml", "node", "bash", "mine"]
            missing = await ask(app, "GET", "/v1/templates/nope")
            assert (missing.status, missing.json["code"]) == (404, "unknown_template")

    asyncio.run(scenario())


def test_what_will_be_wanted_is_said_and_taken_back() -> None:
    """Of a template that there is, and no fewer than none."""

    async def scenario() -> None:
        async with served() as (node, app):
            said = await ask(app, "POST", "/v1/templates/python/expect", {"width": 7})
            assert (said.status, said.json["id"], node.templates.widths["python"]) == (200, "python", 7)
            assert (await ask(app, "POST", "/v1/templates/python/expect", {"width": 0})).status == 200
            assert node.templates.widths["python"] == 1
            wrong = await ask(app, "POST", "/v1/templates/python/expect", {"width": -1})
            assert (wrong.status, wrong.json["code"]) == (400, "invalid_request")
            missing = await ask(app, "POST", "/v1/templates/nope/expect", {"width": 1})
            assert (missing.status, missing.json["code"]) == (404, "unknown_template")

    asyncio.run(scenario())
