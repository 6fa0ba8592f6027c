"""Pools and their workers."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hotbed.dashboard.app import make_pages
from hotbed.dashboard.history import History
from hotbed.dashboard.look import House
from hotbed.dashboard.visitors import Visitors
from hotbed.node.keys.keyring import Keyring
from hotbed.node.keys.store import KeyStore
from hotbed.node.leases import Lease
from hotbed.node.tenants import DEFAULT_TIERS, Tenant
from tests.unit.dashboard.looking import Always, Looking, words
from tests.unit.node.pooling import pooling_node, wanted


def test_a_pool_is_shown_with_its_workers_to_who_owns_it(tmp_path: Path) -> None:
    """To the operator as well, and to no other tenant."""

    async def scenario() -> None:
        async with pooling_node(tmp_path) as node:
            lease = Lease(tenant=Tenant("bob", DEFAULT_TIERS["pro"]))
            made = await node.pools.create(await wanted(node, tmp_path, n=3, label="<i>"), lease)
            store, keyring = KeyStore(tmp_path), Keyring(KeyStore(tmp_path), clock=Always())
            house = House(node=node, history=History(node), visitors=Visitors(keyring), keyring=keyring)
            here = Looking(node, house, make_pages(house), store)
            here.add_key("run")  # from the first key on, everybody needs one
            other = await here.sign_in("read", tenant="zoe")
            for cookie in (await here.sign_in("read", tenant="bob"), await here.sign_in("admin")):
                for path in ("/pools", "/parts/pools"):
                    page = await here.get(path, cookie=cookie)
                    assert made.id in words(page)
                    assert "3 waiting" in words(page)
                    assert page.body.count(b'<i class="cell waiting"') == 3
                    assert b"&lt;i&gt;" in page.body
            assert "No pool lives" in words(await here.get("/pools", cookie=other))
            lease.end()
            for each in (keyring, store):
                each.close()

    asyncio.run(scenario())
