"""The pages as an ASGI application: who asks, what he may see, and what he gets when something is wrong.

The server puts it beside its API (see `paths`). A handler reads what the node keeps and answers a `Page`; drawing it
happens in a thread, so that a long page costs the rollouts beside it as little as can be.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from hotbed.dashboard import assets
from hotbed.dashboard.look import House, Look, Page
from hotbed.dashboard.pages import groups, keys, overview, pools, rollouts, sandboxes, templates, waits
from hotbed.dashboard.pages.sign_in import sign_in, sign_out
from hotbed.dashboard.rendering import Renderer
from hotbed.dashboard.visitors import OPERATOR, check_origin
from hotbed.errors import Error, NotFound

Handler = Callable[[Look], Awaitable[Page | Response]]

NAVIGATION = (
    ("/", "Overview"),
    ("/sandboxes", "Sandboxes"),
    ("/pools", "Pools"),
    ("/rollouts", "Rollouts"),
    ("/groups", "Groups"),
    ("/waits", "Waiting"),
    ("/templates", "Templates"),
    ("/keys", "Keys"),
)
GET: tuple[tuple[str, Handler], ...] = (
    ("/", overview.show),
    ("/parts/state", overview.state),
    ("/plots.json", overview.plots),
    ("/sandboxes", sandboxes.show),
    ("/parts/grid", sandboxes.grid),
    ("/pools", pools.show),
    ("/parts/pools", pools.part),
    ("/rollouts", rollouts.listing),
    ("/rollouts/{id}", rollouts.show),
    ("/rollouts/{id}/{stream}", rollouts.download),
    ("/groups", groups.listing),
    ("/groups/{id:path}", groups.show),
    ("/waits", waits.show),
    ("/parts/waits", waits.part),
    ("/templates", templates.show),
    ("/keys", keys.show),
)
POST: tuple[tuple[str, Handler], ...] = (("/rollouts/{id}/replay", rollouts.replay),)

log = logging.getLogger(__name__)


def make_pages(house: House) -> ASGIApp:
    """The application."""
    renderer = Renderer()
    routes = [Route(path, Endpoint(handler, house, renderer), methods=["GET"]) for path, handler in GET]
    posts = [Route(path, Endpoint(handler, house, renderer), methods=["POST"]) for path, handler in POST]
    entrances = [
        Route("/sign-in", Endpoint(sign_in, house, renderer, public=True), methods=["GET", "POST"]),
        Route("/sign-out", Endpoint(sign_out, house, renderer, public=True), methods=["POST"]),
        Route("/static/{name:path}", Endpoint(static, house, renderer, public=True), methods=["GET"]),
    ]
    return Router([*entrances, *posts, *routes], redirect_slashes=False, default=Endpoint(unknown, house, renderer))


async def static(look: Look) -> Response:
    """A file that pages load."""
    return assets.response(look.segment("name"))


async def unknown(look: Look) -> Page:
    """No page."""
    raise NotFound(f"there is no page {look.request.url.path[:80]!r}", hint="the pages are in the menu")


class Endpoint:
    """One page: lets in who may look, and answers whatever happens."""

    def __init__(self, handler: Handler, house: House, renderer: Renderer, *, public: bool = False) -> None:
        self._handler = handler
        self._house = house
        self._renderer = renderer
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except ClientDisconnect:
            return
        except Exception as failure:  # noqa: BLE001  the request boundary: every failure becomes a page
            response = await self._draw(request, failed(failure))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        if request.method == "POST":
            check_origin(request)
        viewer = OPERATOR if self._public else self._house.visitors.viewer(request)
        if viewer is None:
            return _to_sign_in(request)
        answer = await self._handler(Look(house=self._house, viewer=viewer, request=request))
        return answer if isinstance(answer, Response) else await self._draw(request, answer)

    async def _draw(self, request: Request, page: Page) -> Response:
        page = replace(page, part=page.part or "hx-request" in request.headers)
        return await asyncio.to_thread(self._renderer.response, page, self._shared(request))

    def _shared(self, request: Request) -> dict[str, Any]:
        """What every page shows around its own."""
        visitors, viewer = self._house.visitors, None
        try:
            viewer = visitors.viewer(request)
        except Error:  # also the page that says so is drawn
            pass
        menu = [entry for entry in NAVIGATION if viewer is not None and (viewer.admin or entry[0] != "/keys")]
        top = "/" + request.url.path.split("/")[1]
        return {"menu": menu, "top": top, "viewer": viewer, "signed_in": bool(viewer and viewer.key_id)}


def failed(failure: Exception) -> Page:
    """The page of a request that failed. What we did not foresee is logged and told to nobody."""
    if not isinstance(failure, Error):
        log.error("event=unforeseen_page error=%r", failure, exc_info=failure)
        failure = Error("the node failed in a way it should not", hint="its log says more; please report it")
    values = {"code": failure.code, "message": failure.message, "hint": failure.hint or ""}
    return Page(template="failed.html", title="That did not work", values=values, status=failure.status)


def _to_sign_in(request: Request) -> Response:
    """Where a browser goes that has yet to sign in; a part of a page takes the whole page there."""
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={"hx-redirect": "/sign-in"})
    return RedirectResponse("/sign-in", 303, headers={"cache-control": "no-store"})
