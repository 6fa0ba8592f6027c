"""What stands between a tenant's request and its handler."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hotbed.server.admission import scopes_of
from hotbed.wire import routes
from tests.unit.server.asking import Asked, ask
from tests.unit.server.keyed import doorway

RUN = {"template": "python", "code": "print(1)"}


@pytest.mark.parametrize("route", routes.ROUTES, ids=lambda route: route.name)
def test_every_route_needs_a_scope(route: routes.Route) -> None:
    """What changes something is never open to a key that may only read, nor is what concerns the whole node."""
    scopes = scopes_of(route)

    assert scopes
    of_the_node = route in (routes.STATS, routes.METRICS, routes.AUDIT)
    changes = route.method not in ("GET", "HEAD") and route is not routes.RELEASE_LEASE  # what a GET took
    assert ("read" not in scopes) == (changes or of_the_node)


def test_a_foreign_id_is_answered_like_one_that_never_was(tmp_path: Path) -> None:
    """Whatever is asked of it, alive or ended."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            made = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json["id"]
            never = made[:16] + "0" * 32
            asks = (("GET", ""), ("DELETE", ""), ("POST", "/exec"), ("GET", "/files?path=/f"), ("GET", "/tar?path=/"))
            for alive in (True, False):
                for method, path in asks:
                    body = {"command": "id"} if method == "POST" else b""
                    foreign = await way.ask("bob", method, f"/v1/sandboxes/{made}{path}", body)
                    unknown = await way.ask("bob", method, f"/v1/sandboxes/{never}{path}", body)
                    assert foreign.status == unknown.status == 404, (method, path, foreign.body)
                    assert foreign.body.replace(made.encode(), b"") == unknown.body.replace(never.encode(), b"")
                assert (await way.ask("acme", "GET", f"/v1/sandboxes/{made}")).status == (200 if alive else 410)
                await way.ask("acme", "DELETE", f"/v1/sandboxes/{made}")

    asyncio.run(scenario())


def test_ending_ones_own_again_is_no_error(tmp_path: Path) -> None:
    """With a key as without: a client that lost the answer asks again. For anybody else it never was."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            made = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json["id"]
            for _ in range(2):
                ended = await way.ask("acme", "DELETE", f"/v1/sandboxes/{made}")
                assert (ended.status, ended.json) == (200, {"id": made, "deleted": True})
            assert (await way.ask("acme", "GET", f"/v1/sandboxes/{made}")).status == 410
            assert (await way.ask("bob", "DELETE", f"/v1/sandboxes/{made}")).status == 404

    asyncio.run(scenario())


def test_freeing_ones_own_snapshot_again_is_no_error(tmp_path: Path) -> None:
    """Nor for an admin. Whoever else names it is told what he is told of one that never was."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            boss = way.add_key("ops", scopes=("admin",))
            parent = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json["id"]
            kept = (await way.ask("acme", "POST", f"/v1/sandboxes/{parent}/snapshots", {})).json["id"]
            for key in ("acme", "acme", boss):
                freed = await way.ask(key, "DELETE", f"/v1/snapshots/{kept}")
                assert (freed.status, freed.json) == (200, {"id": kept, "deleted": True})
            foreign = await way.ask("bob", "DELETE", f"/v1/snapshots/{kept}")
            unknown = await way.ask("bob", "DELETE", "/v1/snapshots/sn_none")
            assert foreign.status == unknown.status == 404
            assert foreign.body.replace(kept.encode(), b"") == unknown.body.replace(b"sn_none", b"")

    asyncio.run(scenario())


def test_lists_hold_the_callers_own(tmp_path: Path) -> None:
    """And the node's own user, who comes without a door, sees everything."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            mine = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json["id"]
            assert (await way.ask("bob", "GET", "/v1/sandboxes")).json == {"sandboxes": []}
            [row] = (await way.ask("acme", "GET", "/v1/sandboxes")).json["sandboxes"]
            assert (row["id"], row["lease_id"]) == (mine, None)
            assert len((await ask(way.own, "GET", "/v1/sandboxes")).json["sandboxes"]) == 1
            assert (await way.ask("bob", "GET", "/v1/health")).json["sessions"] == 0
            assert (await way.ask("acme", "GET", "/v1/health")).json["running"] == 1
            for path, name in (("/v1/pools", "pools"), ("/v1/snapshots", "snapshots")):
                assert (await way.ask("bob", "GET", path)).json == {name: []}

    asyncio.run(scenario())


def test_a_lease_is_its_tenants(tmp_path: Path) -> None:
    """Somebody else's cannot be named, and what is made under one ends with it."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            headers = {"authorization": f"Bearer {way.keys['acme']}", "x-hotbed-api": "1"}
            held = Asked("GET", "/v1/leases/hold", b"", headers)
            holding = asyncio.ensure_future(way.door(held.scope, held.receive, held.send))
            await held.wait_chunks(1)
            lease = {"x-hotbed-lease": held.answer.lines[0]["lease_id"]}
            stolen = await way.ask("bob", "POST", "/v1/sandboxes", {"template": "python"}, **lease)
            assert (stolen.status, stolen.json["code"]) == (410, "session_gone")
            made = await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"}, **lease)
            held.hang_up()
            await holding
            assert (await way.ask("acme", "GET", f"/v1/sandboxes/{made.json['id']}")).status == 410

    asyncio.run(scenario())


def test_a_scope_that_is_missing_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """In words, with the scope that it takes."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            reader = way.add_key("acme", scopes=("read",))
            for method, path, body in (
                ("POST", "/v1/rollouts", RUN),
                ("POST", "/v1/sandboxes", {"template": "python"}),
                ("DELETE", "/v1/sandboxes/x", b""),
                ("POST", "/v1/grade", {"spec": {}, "codes": []}),
                ("GET", "/v1/stats", b""),
            ):
                refused = await way.ask(reader, method, path, body)
                assert (refused.status, refused.json["code"]) == (403, "forbidden"), path
            assert (await way.raw(reader, "POST", "/v1/sandboxes", {"template": "python"})).status == 403
            assert (await way.ask(reader, "GET", "/v1/sandboxes")).status == 200
            admin = way.add_key("acme", scopes=("admin",))
            assert (await way.ask(admin, "GET", "/v1/stats")).status == 200

    asyncio.run(scenario())


def test_quotas_are_refused_in_words_before_anything_is_made(tmp_path: Path) -> None:
    """Sandboxes at once, memory, workers, templates."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            create = {"template": "python"}
            made = [(await way.ask("acme", "POST", "/v1/sandboxes", create)).json["id"] for _ in range(2)]
            third = await way.ask("acme", "POST", "/v1/sandboxes", create)
            assert (third.status, third.json["code"]) == (429, "quota_exceeded") and third.headers["retry-after"]
            assert "tenant acme may have 2 sandboxes in tier small" in third.json["message"]
            assert way.node.admission.running == 2
            assert (await way.ask("bob", "POST", "/v1/sandboxes", create)).status == 201
            pool = {"env_digest": "0" * 64, "n": 1, "mode": "default", "template": "python"}
            assert "1 workers were asked for" in (await way.ask("acme", "POST", "/v1/pools", pool)).json["message"]
            await way.ask("acme", "DELETE", f"/v1/sandboxes/{made[0]}")
            large = await way.ask("acme", "POST", "/v1/rollouts", {**RUN, "limits": {"memory_mib": 2048}})
            assert "tier small allows 1024" in large.json["message"]
            assert (await way.ask("acme", "POST", "/v1/rollouts", RUN)).json["stdout"] == "1\n"

    asyncio.run(scenario())


def test_templates_are_their_tenants(tmp_path: Path) -> None:
    """Two tenants may choose one name; neither can name the other's."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            for tenant in ("acme", "bob"):
                row = await way.ask(tenant, "POST", "/v1/templates", {"name": "mine", "env": {"WHO": tenant}})
                assert (row.status, row.json["id"]) == (201, f"{tenant}--mine"), row.body
                run = {"template": "mine", "command": "true"}
                assert (await way.ask(tenant, "POST", "/v1/rollouts", run)).json["template"] == f"{tenant}--mine"
            assert (await way.ask("bob", "GET", "/v1/templates/acme--mine")).status == 404
            stolen = await way.ask("bob", "POST", "/v1/rollouts", {"template": "acme--mine", "code": "1"})
            assert (stolen.status, stolen.json["code"]) == (404, "unknown_template")
            names = {row["name"] for row in (await way.ask("bob", "GET", "/v1/templates")).json["templates"]}
            assert names == {*way.node.templates.built_in, "bob--mine"}
            second = await way.ask("bob", "POST", "/v1/templates", {"name": "other"})
            assert (second.status, second.json["code"]) == (403, "tier_limit")

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["..", "%2e%2e%2f", "a%00b", "%ff", "a" * 5000, "' OR 1=1 --", "*", "{id}"])
def test_a_tricky_id_names_nothing(tmp_path: Path, name: str) -> None:
    """Neither a path, nor a pattern, nor a query."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            for path in ("/v1/sandboxes/", "/v1/pools/", "/v1/templates/", "/v1/sessions/"):
                assert (await way.ask("acme", "GET", f"{path}{name}")).status == 404, path
                assert (await way.raw("acme", "GET", f"{path}{name}")).status == 404, path
            assert (await way.ask("acme", "DELETE", f"/v1/snapshots/{name}")).status == 404

    asyncio.run(scenario())


def test_an_admin_sees_and_ends_what_is_anybodys_and_makes_what_is_its_tenants(tmp_path: Path) -> None:
    """One meaning, on both wires and the pages: it is the operator's."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            boss = way.add_key("ops", scopes=("admin",))
            theirs = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json["id"]
            own = (await way.ask(boss, "POST", "/v1/sandboxes", {"template": "python"})).json["id"]
            for ask in (way.ask, way.raw):
                seen = {row["id"][-len(own) :] for row in (await ask(boss, "GET", "/v1/sandboxes")).json["sandboxes"]}
                assert seen == {theirs, own}
            assert (await way.ask(boss, "GET", "/v1/health")).json["sessions"] == 2
            assert (await way.ask(boss, "POST", f"/v1/sandboxes/{theirs}/exec", {"command": "echo"})).json["ok"]
            assert [row["id"] for row in (await way.ask("acme", "GET", "/v1/sandboxes")).json["sandboxes"]] == [theirs]
            for ask, name in ((way.ask, theirs), (way.raw, f"sbx_{own}")):
                assert (await ask(boss, "DELETE", f"/v1/sandboxes/{name}")).status == 200
            assert len(way.node.sessions) == 0

    asyncio.run(scenario())
