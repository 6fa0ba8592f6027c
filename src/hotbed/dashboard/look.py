"""One request for a page: who looks, at which node, and what a page is made of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import Request

from hotbed.dashboard.history import History
from hotbed.dashboard.visitors import Viewer, Visitors
from hotbed.errors import InvalidRequest
from hotbed.node.keys.keyring import Keyring
from hotbed.node.ledger.store import Store
from hotbed.node.node import Node
from hotbed.node.tenants import Tenants

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What all pages read from. Without a keyring nobody has keys, and there are no tenants."""

    node: Node
    history: History
    visitors: Visitors
    keyring: Keyring | None = None
    tenants: Tenants | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a handler answers: a template and its values. With `part`, the page's own piece alone is drawn."""

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    part: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A request by somebody who may look."""

    house: House
    viewer: Viewer
    request: Request

    @property
    def node(self) -> Node:
        """The node that is looked at."""
        return self.house.node

    def segment(self, name: str) -> str:
        """A `{segment}` of the path."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """A field of the query, without blanks around it; nothing that is kept has a NUL in it."""
        return self.request.query_params.get(name, default).replace("\0", "").strip()

    def number(self, name: str) -> int | None:
        """A whole number of the query. Raises `InvalidRequest`."""
        text = self.query(name)
        if not text:
            return None
        if not (text.isascii() and text.isdigit()) or len(text) > 18:
            raise InvalidRequest(f"{name} must be a whole number, not {text[:32]!r}")
        return int(text)

    def choice(self, name: str, among: Mapping[str, Any], default: str) -> str:
        """One of some words of the query; the default for what is none of them."""
        text = self.query(name)
        return text if text in among else default

    async def read(self, look: Callable[[Store], T]) -> T | None:
        """Look something up in the ledger, off the event loop; None where the node keeps none."""
        ledger = self.node.ledger
        return None if ledger is None else await asyncio.to_thread(ledger.read, look)
