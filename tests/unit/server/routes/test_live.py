"""Live operations over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.server.asking import ask, make_sandbox, served
from tests.unit.server.keyed import doorway


def test_a_sandbox_is_forked_kept_suspended_and_ended_as_a_group() -> None:
    """Each by one request."""

    async def scenario() -> None:
        async with served() as (_, app):
            parent = await make_sandbox(app)
            forked = await ask(app, "POST", f"/v1/sandboxes/{parent}/fork", {"count": 2, "seed_mode": "crn"})
            assert (forked.status, len(forked.json["children"]), len(set(forked.json["seeds"]))) == (201, 2, 1)
            kept = await ask(app, "POST", f"/v1/sandboxes/{parent}/snapshots", {})
            assert (kept.status, kept.json["sandbox"]) == (201, parent)
            await make_sandbox(app, snapshot=kept.json["id"])
            assert [row["id"] for row in (await ask(app, "GET", "/v1/snapshots")).json["snapshots"]] == [
                kept.json["id"]
            ]
            assert (await ask(app, "DELETE", f"/v1/snapshots/{kept.json['id']}")).status == 200
            assert (await ask(app, "POST", f"/v1/sandboxes/{parent}/suspend")).json["state"] == "suspended"
            refused = await ask(app, "POST", f"/v1/sandboxes/{parent}/exec", {"command": "true"})
            assert (refused.status, refused.json["code"]) == (409, "sandbox_suspended")
            for part in ("files", "tar"):  # it could not answer, and would be taken for broken
                refused = await ask(app, "GET", f"/v1/sandboxes/{parent}/{part}?path=/work")
                assert (refused.status, refused.json["code"]) == (409, "sandbox_suspended"), part
            assert (await ask(app, "POST", f"/v1/sandboxes/{parent}/resume")).json["state"] == "running"
            assert (await ask(app, "POST", "/v1/sandboxes/none/fork", {"count": 2})).status == 404

    asyncio.run(scenario())


def test_a_tier_bounds_the_children_of_one_fork(tmp_path: Path) -> None:
    """Refused before anything is made, and never silently fewer."""

    async def scenario() -> None:
        async with doorway(tmp_path, tiers={"small": {"sandboxes": 4, "fork": 2}}) as way:
            parent = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json["id"]
            refused = await way.ask("acme", "POST", f"/v1/sandboxes/{parent}/fork", {"count": 3})
            assert (refused.status, refused.json["code"]) == (403, "tier_limit")
            assert len(way.node.sessions) == 1
            forked = await way.ask("acme", "POST", f"/v1/sandboxes/{parent}/fork", {"count": 2})
            refused = await way.ask("acme", "POST", f"/v1/sandboxes/{parent}/fork", {"count": 2})
            assert (refused.status, refused.json["code"], len(way.node.sessions)) == (429, "quota_exceeded", 3)
            assert (await way.ask("bob", "POST", f"/v1/sandboxes/{parent}/suspend")).status == 404
            assert len(forked.json["children"]) == 2

    asyncio.run(scenario())


def test_a_snapshot_is_its_tenants_alone(tmp_path: Path) -> None:
    """To another it is one that never was, whatever is asked of it."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            parent = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json["id"]
            kept = (await way.ask("acme", "POST", f"/v1/sandboxes/{parent}/snapshots", {})).json["id"]
            begin = {"template": "python", "snapshot": kept}
            assert (await way.ask("bob", "POST", "/v1/sandboxes", begin)).status == 404
            assert (await way.ask("bob", "DELETE", f"/v1/snapshots/{kept}")).status == 404
            assert (await way.ask("acme", "POST", "/v1/sandboxes", begin)).status == 201

    asyncio.run(scenario())
