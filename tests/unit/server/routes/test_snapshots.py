"""Snapshots over HTTP, as far as a backend that copies nothing shows them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.server.asking import ask
from tests.unit.server.routes.test_pools import served


def test_a_node_that_copies_nothing_says_so(tmp_path: Path) -> None:
    """With the code that a client tells it by; deleting what is not there is no error."""

    async def scenario() -> None:
        async with served(tmp_path) as (_, app, digest):
            pool = (await ask(app, "POST", "/v1/pools", {"env_digest": digest, "n": 2})).json["id"]
            taken = await ask(app, "POST", f"/v1/pools/{pool}/snapshots", {"worker": 0})
            assert (taken.status, taken.json["code"]) == (409, "snapshot_unsupported")
            forked = await ask(app, "POST", f"/v1/pools/{pool}/fork", {"worker": 0, "targets": [1]})
            assert (forked.status, forked.json["code"]) == (409, "snapshot_unsupported")
            wrong = await ask(app, "POST", f"/v1/pools/{pool}/fork", {"worker": 0, "targets": [0]})
            assert wrong.status == 400
            assert (
                await ask(app, "POST", "/v1/pools/pl_none/restore", {"snapshot": "s", "workers": [0]})
            ).status == 404
            assert (await ask(app, "GET", "/v1/snapshots")).json == {"snapshots": []}
            await ask(app, "DELETE", f"/v1/pools/{pool}")

    asyncio.run(scenario())
