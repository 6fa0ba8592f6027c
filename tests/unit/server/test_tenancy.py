"""What the handlers of the published wires ask of a caller."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.server.keyed import doorway


def test_what_a_published_client_makes_is_its_tenants(tmp_path: Path) -> None:
    """It holds no lease, so it lives under the tenant's lasting one, within the tier."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            made = [await way.raw("acme", "POST", "/v1/sandboxes", {"template": "python"}) for _ in range(3)]
            assert [answer.status for answer in made] == [201, 201, 429]
            assert way.node.admission.held("acme") == 2
            assert (await way.raw("bob", "GET", "/v1/sandboxes")).json == {"sandboxes": []}
            once = {"template_id": "python", "code": "print(1)"}
            assert (await way.raw("bob", "POST", "/v1/exec", once)).json["stdout"] == "1\n"

    asyncio.run(scenario())


def test_a_lease_of_somebody_else_cannot_be_named(tmp_path: Path) -> None:
    """Not on these wires either."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            lease = way.node.leases.open()
            named = {"x-hotbed-lease": lease.id}
            assert (await way.raw("acme", "POST", "/v1/sandboxes", {"template": "python"}, **named)).status == 404
            way.node.leases.end(lease)

    asyncio.run(scenario())


def test_a_template_that_is_not_there_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    """And not by the node's name for it, on either wire."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            for ask in (way.ask, way.raw):
                refused = await ask("acme", "POST", "/v1/sandboxes", {"template": "pyhton"})
                assert refused.status == 404
                assert b"'pyhton'" in refused.body

    asyncio.run(scenario())
