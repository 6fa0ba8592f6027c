"""Holding a lease."""

from __future__ import annotations

import asyncio

from tests.unit.server.asking import Asked, ask, make_sandbox, served


def test_what_was_made_under_a_lease_ends_with_its_connection() -> None:
    """kill -9 of a client is a connection that ends."""

    async def scenario() -> None:
        async with served() as (node, app):
            asked = Asked("GET", "/v1/leases/hold", b"", {})
            holding = asyncio.ensure_future(app(asked.scope, asked.receive, asked.send))
            await asked.wait_chunks(1)
            lease = asked.answer.lines[0]["lease_id"]
            made = await ask(app, "POST", "/v1/sandboxes", {"template": "python"}, headers={"X-Hotbed-Lease": lease})
            other = await make_sandbox(app)

            asked.hang_up()
            await asyncio.wait_for(holding, 5)

            assert (await ask(app, "GET", f"/v1/sandboxes/{made.json['id']}")).status == 410
            assert (await ask(app, "GET", f"/v1/sandboxes/{other}")).status == 200
            assert len(node.leases) == 0

    asyncio.run(scenario())


def test_a_held_lease_shows_that_it_lives_and_ends_with_the_node() -> None:
    """A client that hears nothing for ttl_s knows that its node is dead."""

    async def scenario() -> None:
        async with served(lease_ttl_s=0.03) as (node, app):
            asked = Asked("GET", "/v1/leases/hold", b"", {})
            holding = asyncio.ensure_future(app(asked.scope, asked.receive, asked.send))
            await asked.wait_chunks(3)
            assert asked.answer.lines[0]["ttl_s"] == 0.03
            assert asked.answer.chunks[1:3] == [b"\n", b"\n"]
            await node.drain(deadline_s=1)
            await asyncio.wait_for(holding, 5)
            assert (await ask(app, "GET", "/v1/leases/hold")).status == 503

    asyncio.run(scenario())
