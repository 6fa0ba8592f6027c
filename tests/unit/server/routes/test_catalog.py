"""The published gateway's images and templates, over the fake backend."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.keyed import doorway

BAKE = {"name": "mine", "image": "python", "pool": {"width": 8}, "ready": {"cmd": "true", "env": {"A": "b"}}}


def test_a_bake_is_live_at_once_and_the_same_twice(tmp_path: Path) -> None:
    """Its width is clamped to the tier, and it counts against the tenant's templates once."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            for _ in range(2):
                made = await way.raw("acme", "POST", "/v1/templates", BAKE)
                assert (made.status, made.json["id"], made.json["name"]) == (201, "acme--mine", "mine"), made.body
            told = (await way.raw("acme", "GET", "/v1/templates/acme--mine")).json
            assert (told["phase"], told["converge_state"], told["declared"], told["warm"]) == (
                "Live",
                "converged",
                2,
                2,
            )
            assert (await way.raw("acme", "POST", "/v1/templates", {**BAKE, "name": "two"})).status == 403
            assert (await way.raw("acme", "POST", "/v1/templates/mine/expect", {"width": 1})).json[
                "expected_width"
            ] == 1
            assert (await way.raw("acme", "POST", "/v1/templates/mine/expect", {"width": 0})).status == 400
            assert (await way.raw("acme", "POST", "/v1/templates/mine/release", {})).json["released"] is True
            assert (await way.raw("acme", "DELETE", "/v1/templates/mine")).json["deleted"] is True
            assert (await way.raw("acme", "GET", "/v1/templates/mine")).status == 404

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": "python:3.11"}, "'python:3.11' is not one that this node can bake from"),
        ({"image": ""}, "image is required"),
        ({"name": ""}, "name is required"),
        ({"ready": {"ports": [80]}}, "ready.ports needs a network"),
        ({"ready": {"http": "http://x"}}, "ready.http needs a network"),
        ({"ready": {"network": True}}, "ready.network needs a network"),
        ({"ready": {"cmd": "echo why; exit 3"}}, "ended with exit 3: why"),
        ({"ready": 3}, "ready must be an object"),
        ({"pool": {"width": -1}}, "width must be at least 1"),
    ],
)
def test_a_bake_that_cannot_be_is_refused_and_leaves_nothing(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    """With the reason: the client shows it."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            told = await way.raw("acme", "POST", "/v1/templates", {**BAKE, **change})
            assert (told.status, told.json["code"]) == (400, "bad_request"), told.body
            assert words in told.json["message"]
            assert way.node.templates.names == ("python", "python-numpy")

    asyncio.run(scenario())


def test_the_catalog_is_nobodys_to_change(tmp_path: Path) -> None:
    """The client rewrites a refusal that does not say "catalog"."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            for method, verb in (("DELETE", ""), ("POST", "/expect"), ("POST", "/release")):
                told = await way.raw("acme", method, f"/v1/templates/python{verb}", {"width": 1})
                assert (told.status, "catalog" in told.json["message"]) == (403, True)
            listed = (await way.raw("acme", "GET", "/v1/images")).json["images"]
            assert [(row["id"], row["visibility"]) for row in listed] == [
                ("python", "public"),
                ("python-numpy", "public"),
            ]

    asyncio.run(scenario())


def test_a_template_in_use_or_of_somebody_else_stays(tmp_path: Path) -> None:
    """In use is 409, somebody else's is 404."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            await way.raw("acme", "POST", "/v1/templates", BAKE)
            made = (await way.raw("acme", "POST", "/v1/sandboxes", {"template": "mine"})).json
            assert made["template"] == "acme--mine"
            assert (await way.raw("acme", "DELETE", "/v1/templates/mine")).json["code"] == "template_in_use"
            for method, verb in (("GET", ""), ("DELETE", ""), ("POST", "/expect"), ("POST", "/release")):
                assert (await way.raw("bob", method, f"/v1/templates/acme--mine{verb}", {"width": 1})).status == 404

    asyncio.run(scenario())
