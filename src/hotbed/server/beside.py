"""The dashboard beside the API: one address, and what a browser asks for goes to the pages.

A page's path is no path of the API's, and a browser sends no Authorization header, so a request with one is the API's
whatever its path. The pages and what draws them are loaded when somebody looks for the first time: a node that nobody
looks at starts no slower for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from importlib import import_module

from starlette.types import ASGIApp, Receive, Scope, Send

from hotbed.dashboard.look import House
from hotbed.dashboard.paths import is_page


class Beside:
    """An application with the pages beside it."""

    def __init__(self, api: ASGIApp, house: House) -> None:
        self._api = api
        self._house = house
        self._pages: ASGIApp | None = None

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http" and is_page(scope["path"]) and not _is_api_call(scope):
            return self._show(scope, receive, send)
        return self._api(scope, receive, send)

    async def _show(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._pages or await self._load()
        await app(scope, receive, send)

    async def _load(self) -> ASGIApp:
        module = await asyncio.to_thread(import_module, "hotbed.dashboard.app")
        if self._pages is None:  # else another request was faster
            self._pages = module.make_pages(self._house)
        pages: ASGIApp = self._pages
        return pages


def _is_api_call(scope: Scope) -> bool:
    return any(name == b"authorization" for name, _ in scope["headers"])
