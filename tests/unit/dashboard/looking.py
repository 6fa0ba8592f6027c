"""Looking at pages without a browser: a node with a ledger, its pages, and who asks."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.types import ASGIApp

from hotbed.dashboard.app import make_pages
from hotbed.dashboard.history import History
from hotbed.dashboard.look import House
from hotbed.dashboard.visitors import COOKIE, Visitors
from hotbed.node.keys.key import Key, key_text, new_secret
from hotbed.node.keys.keyring import Keyring
from hotbed.node.keys.store import KeyStore
from hotbed.node.ledger.entry import Entry
from hotbed.node.ledger.ledger import Ledger
from hotbed.node.ledger.writer import Retention
from hotbed.node.node import Node
from hotbed.node.policy import Policy
from hotbed.node.tenants import Tenants
from hotbed.runtime.backends.fake import FakeBackend
from tests.unit.node.nodes import POLICY
from tests.unit.server.asking import Answer, ask

HERE = {"host": "127.0.0.1:8080"}
OURS = {**HERE, "origin": "http://127.0.0.1:8080", "sec-fetch-site": "same-origin"}


@dataclass
class Looking:
    """A node and its pages."""

    node: Node
    house: House
    app: ASGIApp
    store: KeyStore | None = None

    async def get(self, path: str, *, cookie: str = "", **headers: str) -> Answer:
        """A page, as a browser asks for it."""
        return await ask(self.app, "GET", path, headers={**HERE, "cookie": f"{COOKIE}={cookie}", **headers})

    async def post(self, path: str, *, cookie: str = "", headers: dict[str, str] | None = None, **form: str) -> Answer:
        """What a form of a page of ours sends."""
        sent = {**OURS, "content-type": "application/x-www-form-urlencoded", "cookie": f"{COOKIE}={cookie}"}
        return await ask(self.app, "POST", path, urlencode(form).encode(), headers={**sent, **(headers or {})})

    async def sign_in(self, *scopes: str, tenant: str = "acme") -> str:
        """The cookie of somebody who has signed in with a new key of these scopes."""
        answer = await self.post("/sign-in", key=self.add_key(*scopes, tenant=tenant))
        assert answer.status == 303, answer.body
        found = re.match(rf"{COOKIE}=([^;]+);", answer.headers["set-cookie"])
        assert found is not None
        return found[1]

    def add_key(self, *scopes: str, tenant: str = "acme") -> str:
        """A new key's text."""
        assert self.store is not None, "made without keys"
        key, secret = Key(tenant=tenant, tier="pro", scopes=frozenset(scopes)), new_secret()
        self.store.add(key, secret)
        return key_text(key, secret)

    def note(self, entries: Iterable[Entry]) -> None:
        """Things that have happened."""
        assert self.node.ledger is not None, "it has one"
        for entry in entries:
            self.node.ledger.note(entry)


@asynccontextmanager
async def looking(home: Path, *, keys: bool = False, ledger: bool = True, **policy: Any) -> AsyncIterator[Looking]:
    """Pages of a node on the fake backend; with `keys`, as behind a port that asks for them."""
    kept = Ledger(home, retention=Retention(days=1e6)) if ledger else None
    node = Node(FakeBackend(), Policy(**{**POLICY, **policy}), version="test", ledger=kept)
    await node.start()
    store = KeyStore(home) if keys else None
    keyring = Keyring(KeyStore(home), clock=Always()) if keys else None
    house = House(
        node=node,
        history=History(node),
        visitors=Visitors(keyring),
        keyring=keyring,
        tenants=Tenants() if keys else None,
    )
    made = Looking(node, house, make_pages(house), store)
    if store is not None:
        made.add_key("run", tenant="first")  # from the first key on, everybody needs one
    try:
        yield made
    finally:
        await node.close()
        for each in (keyring, store):
            if each is not None:
                each.close()


class Always:
    """A clock by which it is always time to look at the keys again."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def words(answer: Answer) -> str:
    """What a page says, without its markup."""
    body = answer.body.decode().partition("<main")[2] or answer.body.decode()
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())
