"""A node behind a door, with two tenants and the keys that a test makes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from hotbed.node.keys.key import Key, key_text, new_secret
from hotbed.node.keys.keyring import Keyring
from hotbed.node.keys.store import KeyStore
from hotbed.node.node import Node
from hotbed.node.tenants import Tenants, tiers_from
from hotbed.server.app import make_app, make_door
from tests.unit.node.nodes import running_node
from tests.unit.server.asking import Answer, ask

TIERS = {"small": {"sandboxes": 2, "waiting": 1, "templates": 1, "fork": 2, "cpus": 1, "memory_mib": 1024}}
ALL = ("run", "grade", "read")


@dataclass
class Doorway:
    """What a test asks through."""

    node: Node
    door: ASGIApp
    own: ASGIApp
    store: KeyStore
    keys: dict[str, str] = field(default_factory=dict)

    def add_key(self, tenant: str, *, tier: str = "small", scopes: tuple[str, ...] = ALL) -> str:
        """A new key's text."""
        key, secret = Key(tenant=tenant, tier=tier, scopes=frozenset(scopes)), new_secret()
        self.store.add(key, secret)
        return key_text(key, secret)

    async def ask(self, key: str, method: str, path: str, body: Any = b"", **headers: str) -> Answer:
        """One request in our API's words; `key` is a tenant's name or the text of a key."""
        return await self.raw(key, method, path, body, **{"x-hotbed-api": "1", **headers})

    async def raw(self, key: str, method: str, path: str, body: Any = b"", **headers: str) -> Answer:
        """One request as the published gateway client sends it."""
        bearer = {"authorization": f"Bearer {self.keys.get(key, key)}"} if key else {}
        return await ask(self.door, method, path, body, headers={**bearer, **headers})


@asynccontextmanager
async def doorway(
    home: Path, *, keys: bool = True, tiers: dict[str, Any] | None = None, **policy: Any
) -> AsyncIterator[Doorway]:
    """A door with tenants `acme` and `bob` of tier small, or with no keys at all."""
    async with running_node(**policy) as node:
        own = make_app(node)
        store, keyring = KeyStore(home), Keyring(KeyStore(home), clock=_Always())
        door = make_door(node, own, keyring, Tenants(tiers_from(tiers or TIERS)))
        made = Doorway(node, door, own, store)
        if keys:
            made.keys = {tenant: made.add_key(tenant) for tenant in ("acme", "bob")}
        try:
            yield made
        finally:
            keyring.close()
            store.close()


class _Always:
    """A clock by which it is always time to look at the keys again."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now
