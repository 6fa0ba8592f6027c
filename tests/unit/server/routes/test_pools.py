"""Pools over HTTP, short of the lanes themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp

from hotbed.node.ledger.ledger import Ledger
from hotbed.node.node import Node
from hotbed.pools import archive
from hotbed.server.app import make_app
from tests.unit.node.pooling import ENV, pooling_node
from tests.unit.server.asking import ask


@asynccontextmanager
async def served(tmp_path: Path) -> AsyncIterator[tuple[Node, ASGIApp, str]]:
    """A node, its application, and an environment's digest that it holds."""
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "env.py").write_text(ENV)
    packed = archive.pack(tmp_path / "e")
    with packed.tar as tar:
        data = tar.read()
    async with pooling_node(tmp_path / "home") as node:
        app = make_app(node)
        assert (await ask(app, "GET", f"/v1/env-dirs/{packed.digest}")).status == 404
        sent = await ask(app, "PUT", f"/v1/env-dirs/{packed.digest}", [data[:1000], data[1000:]])
        assert (sent.status, sent.json["files"]) == (200, 1)
        yield node, app, packed.digest


def test_a_pool_from_its_directory_to_its_end(tmp_path: Path) -> None:
    """Deleting is idempotent; what was deleted is gone, not unknown."""

    async def scenario() -> None:
        async with served(tmp_path) as (_, app, digest):
            assert (await ask(app, "GET", f"/v1/env-dirs/{digest}")).json["digest"] == digest
            made = await ask(app, "POST", "/v1/pools", {"env_digest": digest, "n": 2, "label": "x"})
            pool = made.json["id"]
            assert (made.status, made.json["n"], made.json["isolation"]) == (201, 2, "fake")
            assert [row["id"] for row in (await ask(app, "GET", "/v1/pools")).json["pools"]] == [pool]
            row = (await ask(app, "GET", f"/v1/pools/{pool}")).json
            assert [worker["state"] for worker in row["workers"]] == ["waiting", "waiting"]
            assert "token" not in row
            for _ in range(2):
                deleted = await ask(app, "DELETE", f"/v1/pools/{pool}")
                assert (deleted.status, deleted.json) == (200, {"id": pool, "deleted": True})
            assert (await ask(app, "GET", f"/v1/pools/{pool}")).json["code"] == "pool_closed"
            assert (await ask(app, "GET", "/v1/pools/pl_other")).status == 404

    asyncio.run(scenario())


def test_workers_are_ended_and_their_output_read(tmp_path: Path) -> None:
    """By their number in the pool."""

    async def scenario() -> None:
        async with served(tmp_path) as (_, app, digest):
            pool = (await ask(app, "POST", "/v1/pools", {"env_digest": digest, "n": 2})).json["id"]
            ended = await ask(app, "POST", f"/v1/pools/{pool}/end", {"workers": [{"index": 1, "trouble": "timeout"}]})
            assert [worker["index"] for worker in ended.json["workers"]] == [1]
            assert (await ask(app, "GET", f"/v1/pools/{pool}/workers/0/output")).json["index"] == 0
            for index in ("2", "x", "-1", "99999999"):
                assert (await ask(app, "GET", f"/v1/pools/{pool}/workers/{index}/output")).status == 404

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"n": 0}, 400, "invalid_request"),
        ({"n": 5000}, 400, "invalid_request"),
        ({"env_digest": "../x"}, 400, "invalid_request"),
        ({"env_digest": "0" * 64}, 404, "not_found"),
        ({"mode": "warm"}, 400, "invalid_request"),
        ({"mode": "boltz"}, 503, "boltz_unavailable"),
        ({"template": "cobol"}, 404, "unknown_template"),
        ({"limits": {"wings": 2}}, 400, "invalid_request"),
        ({"seed": "7"}, 400, "invalid_seed"),
        ({"slots": 0}, 400, "invalid_request"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(tmp_path: Path, change: dict[str, Any], status: int, code: str) -> None:
    """Before anything is made."""

    async def scenario() -> None:
        async with served(tmp_path) as (_, app, digest):
            refused = await ask(app, "POST", "/v1/pools", {"env_digest": digest, "n": 1, **change})
            assert (refused.status, refused.json["code"]) == (status, code)

    asyncio.run(scenario())


def test_a_directory_that_is_not_what_it_says_is_refused(tmp_path: Path) -> None:
    """Cut short, or no tar at all."""

    async def scenario() -> None:
        async with served(tmp_path) as (_, app, digest):
            assert (await ask(app, "PUT", f"/v1/env-dirs/{digest}", b"x" * 1024)).json["code"] == "bad_env_dir"
            assert (await ask(app, "PUT", "/v1/env-dirs/short", b"")).json["code"] == "invalid_request"

    asyncio.run(scenario())


def test_episodes_are_kept_for_who_asked_for_it(tmp_path: Path) -> None:
    """By a node that has a ledger; another one refuses the pool, not the episodes when they are over."""

    async def scenario() -> None:
        async with served(tmp_path) as (node, app, digest):
            refused = await ask(app, "POST", "/v1/pools", {"env_digest": digest, "n": 1, "record": True})
            assert (refused.status, "ledger" in refused.json["message"]) == (400, True)
            node.ledger = Ledger(tmp_path / "ledger")
            pool = (await ask(app, "POST", "/v1/pools", {"env_digest": digest, "n": 1, "record": True})).json["id"]
            told = {"worker": 0, "number": 0, "seed": 7, "actions": "[1]", "shown": "{}"}
            path = f"/v1/pools/{pool}/episodes"
            kept = await ask(app, "POST", path, {"episodes": [told]})
            assert (await ask(app, "POST", path, {"episodes": [{**told, "actions": "x"}]})).status == 400
            rows = (await ask(app, "GET", f"/v1/rollouts?group_id={pool}")).json["rollouts"]
            assert [row["id"] for row in rows] == kept.json["ids"]

    asyncio.run(scenario())
