"""The way in, where requests need a key."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hotbed.dashboard.look import Look, Page
from hotbed.dashboard.visitors import COOKIE, GOOD_S
from hotbed.errors import Error, TooLarge

FORM_LIMIT = 4096


async def sign_in(look: Look) -> Page | Response:
    """The form, and what it sends. A key that is no good is the form again, with the reason."""
    visitors = look.house.visitors
    if not visitors.need_key:
        return RedirectResponse("/", 303)
    if look.request.method != "POST":
        return Page(template="sign_in.html", title="Sign in", values={"problem": ""})
    try:
        token = visitors.sign_in(await _key(look.request))
    except Error as error:
        problem = f"{error.message}. {error.hint or ''}"
        return Page(template="sign_in.html", title="Sign in", values={"problem": problem}, status=error.status)
    response = RedirectResponse("/", 303)
    secure = look.request.url.scheme == "https"
    response.set_cookie(COOKIE, token, max_age=GOOD_S, httponly=True, samesite="strict", secure=secure)
    return response


async def sign_out(look: Look) -> Response:
    """Forget the browser that asks."""
    look.house.visitors.sign_out(look.request)
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


async def _key(request: Request) -> str:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_LIMIT:
            raise TooLarge("that is no key: it is too long")
    return parse_qs(body.decode("utf-8", "replace")).get("key", [""])[0]
