"""The node itself."""

from __future__ import annotations

import asyncio

from tests.unit.server.asking import ask, served


def test_health_capabilities_and_stats_are_plain_objects() -> None:
    """What tools and dashboards read."""

    async def scenario() -> None:
        async with served() as (node, app):
            health = (await ask(app, "GET", "/v1/health")).json
            assert (health["status"], health["isolation"], health["max_inflight"]) == ("ok", "fake", 8)
            assert health["templates"] == ["python", "python-numpy", "python-ml", "node", "bash"]
            assert (await ask(app, "GET", "/v1/capabilities")).json["isolation"] == "fake"
            stats = (await ask(app, "GET", "/v1/stats")).json
            assert set(stats) == {"node", "backend", "ledger"}
            node.draining = True
            assert (await ask(app, "GET", "/v1/health")).json["status"] == "draining"

    asyncio.run(scenario())


def test_the_openapi_document_is_served() -> None:
    """At the address where tools look for it."""

    async def scenario() -> None:
        async with served() as (_, app):
            answer = await ask(app, "GET", "/openapi.json")
            assert (answer.status, answer.json["openapi"]) == (200, "3.1.0")
            assert "/v1/sandboxes/{id}/exec" in answer.json["paths"]

    asyncio.run(scenario())
