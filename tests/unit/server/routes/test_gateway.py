"""The published gateway's sandboxes, over the fake backend. tests/interop has the real client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.keyed import doorway


def test_a_sandbox_from_creation_to_deletion(tmp_path: Path) -> None:
    """Deleting again is no error; asking for it is."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            made = (await way.raw("acme", "POST", "/v1/sandboxes", {"template": "python", "label": "l"})).json
            path = f"/v1/sandboxes/{made['id']}"
            row = (await way.raw("acme", "GET", path)).json
            assert (row["template"], row["template_id"], row["label"]) == ("python", "python", "l")
            assert None not in row.values()
            for _ in range(2):
                assert (await way.raw("acme", "DELETE", path)).json == {"deleted": True, "id": made["id"]}
            assert (await way.raw("acme", "GET", path)).json["code"] == "not_found"
            assert (await way.raw("acme", "GET", "/v1/sandboxes")).json == {"sandboxes": []}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("fork", {"count": 3}, 400),
        ("fork", {"count": 0}, 400),
        ("fork", {"count": True}, 400),
        ("fork", {"count": 2, "labels": ["a"]}, 400),
        ("connect-url", {"port": 80, "protocol": "udp"}, 400),
        ("connect-url", {"port": 0}, 400),
    ],
)
def test_what_the_node_cannot_do_is_refused_in_order(
    tmp_path: Path, verb: str, body: dict[str, Any], status: int
) -> None:
    """First whose it is, then whether it makes sense, then that it cannot be done."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            made = (await way.raw("acme", "POST", "/v1/sandboxes", {"template": "python"})).json["id"]
            told = await way.raw("acme", "POST", f"/v1/sandboxes/{made}/{verb}", body)
            assert told.status == status and told.json["message"] and told.json["code"], told.body
            assert (await way.raw("bob", "POST", f"/v1/sandboxes/{made}/{verb}", body)).status == 404

    asyncio.run(scenario())


def test_usage_needs_a_span_that_makes_sense(tmp_path: Path) -> None:
    """And a ledger, which this node does not keep."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            for query in ("from=soon", "from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z"):
                assert (await way.raw("acme", "GET", f"/v1/usage?{query}")).status == 400
            told = await way.raw("acme", "GET", "/v1/usage")
            assert (told.status, told.json["message"].startswith("this node keeps no ledger")) == (400, True)

    asyncio.run(scenario())
