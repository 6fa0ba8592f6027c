"""Sandboxes over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.server.asking import ask, make_sandbox, served
from tests.unit.server.keyed import doorway


def test_a_sandbox_from_creation_to_deletion() -> None:
    """Deleting is idempotent; what was deleted is gone, not unknown."""

    async def scenario() -> None:
        async with served() as (_, app):
            name = await make_sandbox(app, label="x")
            assert [row["id"] for row in (await ask(app, "GET", "/v1/sandboxes")).json["sandboxes"]] == [name]
            assert (await ask(app, "GET", f"/v1/sandboxes/{name}")).json["label"] == "x"
            for _ in range(2):
                deleted = await ask(app, "DELETE", f"/v1/sandboxes/{name}")
                assert (deleted.status, deleted.json) == (200, {"id": name, "deleted": True})
            assert (await ask(app, "GET", f"/v1/sandboxes/{name}")).status == 410
            assert (await ask(app, "GET", "/v1/sandboxes/abc")).status == 404
            assert (await ask(app, "DELETE", "/v1/sandboxes/abc")).status == 404

    asyncio.run(scenario())


def test_a_full_node_says_when_to_come_back() -> None:
    """Before anything is made."""

    async def scenario() -> None:
        async with served(max_sandboxes=1, queue_limit=0) as (_, app):
            await make_sandbox(app)
            refused = await ask(app, "POST", "/v1/sandboxes", {"template": "python"})
            assert (refused.status, refused.json["code"], refused.headers["retry-after"]) == (429, "at_capacity", "1")

    asyncio.run(scenario())


def test_many_are_ended_by_one_request_and_only_the_callers(tmp_path: Path) -> None:
    """Another tenant's do not exist."""

    async def run() -> None:
        async with doorway(tmp_path) as way:
            made = [
                (await way.ask(who, "POST", "/v1/sandboxes", {"template": "python", "group": "g"})).json["id"]
                for who in ("acme", "bob", "acme")
            ]
            answer = await way.ask("acme", "POST", "/v1/sandboxes/delete", {"group": "g"})
            assert set(answer.json["ids"]) == {made[0], made[2]}
            left = (await way.ask("bob", "GET", "/v1/sandboxes")).json["sandboxes"]
            assert [(row["id"], row["group"]) for row in left] == [(made[1], "g")]

    asyncio.run(run())
