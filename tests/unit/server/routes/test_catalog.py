"""The published gateway's images and templates, over the fake backend."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.asking import ask
from tests.unit.server.keyed import TIERS, doorway

BAKE = {"name": "mine", "image": "python", "pool": {"width": 8}, "ready": {"cmd": "true", "env": {"A": "b"}}}


async def finished(way: Any, name: str) -> Any:
    """A template's status once its bake has ended."""
    while True:
        told = (await way.raw("acme", "GET", f"/v1/templates/{name}")).json
        if told["phase"] in ("Live", "Failed"):
            return told
        await asyncio.sleep(0.01)


def test_a_bake_becomes_live_and_is_the_same_twice(tmp_path: Path) -> None:
    """Its width is clamped to the tier, and it counts against the tenant's templates once."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            for _ in range(2):
                made = await way.raw("acme", "POST", "/v1/templates", BAKE)
                assert (made.status, made.json["id"], made.json["name"]) == (201, "acme--mine", "mine"), made.body
            told = await finished(way, "acme--mine")
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


def test_a_network_that_the_tier_has_not_is_refused_in_the_clients_own_words(tmp_path: Path) -> None:
    """Before anything is made; without one, the same is baked."""

    async def scenario() -> None:
        async with doorway(tmp_path, tiers={"small": {**TIERS["small"], "network": False}}) as way:
            wired = {**BAKE, "ready": {"cmd": "true", "network": True}}
            refused = await way.raw("acme", "POST", "/v1/templates", wired)
            assert (refused.status, refused.json["code"]) == (403, "network_requires_pro")
            assert "tier small gives no sandbox a network; pro and ent do" in refused.body.decode()
            assert (await way.raw("acme", "GET", "/v1/templates/mine")).status == 404
            body = {"template": "python", "egress": {"mode": "open"}}
            assert (await way.ask("acme", "POST", "/v1/sandboxes", body)).json["code"] == "tier_limit"
            assert (await way.raw("acme", "POST", "/v1/templates", BAKE)).status == 201

    asyncio.run(scenario())


def test_a_sandbox_of_what_is_still_baked_is_to_be_asked_for_again(tmp_path: Path) -> None:
    """In the words that the published client retries on, and in ours."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            slow = {**BAKE, "ready": {"cmd": "sleep 60"}}
            assert (await way.raw("acme", "POST", "/v1/templates", slow)).status == 201
            gateway = await way.raw("acme", "POST", "/v1/sandboxes", {"template": "acme--mine"})
            daemon = await way.raw("acme", "POST", "/v1/sessions", {"template_id": "acme--mine"})
            for refused in (gateway, daemon):
                assert (refused.status, refused.json["code"]) == (503, "at_capacity"), refused.body
                assert "still being baked" in refused.json["message"]
            assert (await way.raw("acme", "POST", "/v1/sandboxes", {"template": "other"})).status == 404
            await way.raw("acme", "DELETE", "/v1/templates/mine")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": "not an image"}, "is no source that we know"),
        ({"image": "rootfs:/etc"}, "names a file of the server's machine"),
        ({"image": ""}, "image is required"),
        ({"name": ""}, "name is required"),
        ({"ready": {"http": "http://localhost"}}, "need ready.cmd"),
        ({"ready": {"ports": [0]}}, "must be a list of ports"),
        ({"ready": {"http": "http://x"}}, "not on the sandbox's own loopback"),
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
            assert not way.node.bakes.names()

    asyncio.run(scenario())


def test_a_bake_that_fails_says_why_and_may_be_tried_again(tmp_path: Path) -> None:
    """It keeps its name and its reason until then."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            await way.raw("acme", "POST", "/v1/templates", {**BAKE, "ready": {"cmd": "echo why; exit 3"}})
            told = await finished(way, "mine")
            assert told["phase"] == "Failed" and "ended with exit 3: why" in told["error"] and told["build_fails"] == 1
            assert (await way.raw("acme", "POST", "/v1/sandboxes", {"template": "mine"})).status == 404
            await way.raw("acme", "POST", "/v1/templates", BAKE)
            assert (await finished(way, "mine"))["phase"] == "Live"

    asyncio.run(scenario())


def test_a_registry_that_is_not_on_the_list_is_not_asked(tmp_path: Path) -> None:
    """An address that a tenant names is one that the node would connect to."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            told = await way.raw("acme", "POST", "/v1/templates", {**BAKE, "image": "169.254.169.254/a"})
            assert told.status == 403 and "fetches no images from" in told.json["message"]

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
                (name, "public") for name in way.node.templates.names
            ]

    asyncio.run(scenario())


def test_a_template_in_use_or_of_somebody_else_stays(tmp_path: Path) -> None:
    """In use is 409, somebody else's is 404."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            await way.raw("acme", "POST", "/v1/templates", BAKE)
            await finished(way, "mine")
            made = (await way.raw("acme", "POST", "/v1/sandboxes", {"template": "mine"})).json
            assert made["template"] == "acme--mine"
            assert (await way.raw("acme", "DELETE", "/v1/templates/mine")).json["code"] == "template_in_use"
            for method, verb in (("GET", ""), ("DELETE", ""), ("POST", "/expect"), ("POST", "/release")):
                assert (await way.raw("bob", method, f"/v1/templates/acme--mine{verb}", {"width": 1})).status == 404

    asyncio.run(scenario())


def test_what_the_operator_puts_into_the_catalog_is_everybodys(tmp_path: Path) -> None:
    """To use and to bake from, and not to delete; what it made besides is its own."""

    async def scenario() -> None:
        async with doorway(tmp_path, catalog=("shared", "absent")) as way:
            for name in ("shared", "kept"):
                made = await ask(way.own, "POST", "/v1/templates", {"name": name, "env": {"A": "b"}})
                assert (made.status, made.json["visibility"]) == (201, "public" if name == "shared" else "private")
            rows = (await way.ask("acme", "GET", "/v1/images")).json["images"]
            assert {"shared", "python"} <= {row["name"] for row in rows} and "kept" not in {row["name"] for row in rows}
            ran = await way.ask("acme", "POST", "/v1/rollouts", {"template": "shared", "command": "echo $A"})
            assert ran.json["stdout"] == "b\n"
            assert (await way.ask("acme", "DELETE", "/v1/templates/shared")).status == 403
            hidden = await way.ask("acme", "POST", "/v1/rollouts", {"template": "kept", "command": "true"})
            assert hidden.status == 404
            assert (await ask(way.own, "DELETE", "/v1/templates/shared")).status == 200

    asyncio.run(scenario())
