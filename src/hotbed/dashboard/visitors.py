"""Who looks at the pages, and how the node knows.

Where requests need a key, a browser signs in with one, by POST: what it gets is a cookie with 256 random bits that
stand for the key's id here, for half a day or until the key is revoked or the node ends. The cookie is HttpOnly and
SameSite=Strict. A key with `admin` is the operator's: it sees the whole node and may replay. One with `read` sees its
own tenant's things, as in the API.

Where no key is needed (a Unix socket, a node without keys) the pages are open as the API is. A browser is then the way
in for any web page that is open in it, so two things are asked for besides. A name that has to be looked up in DNS
could have been pointed here by its owner, so pages are served under IP addresses and `localhost` only. And what changes
something, with or without keys, must come from a page of ours: the browser says so in `Sec-Fetch-Site` or `Origin`.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request

from hotbed.errors import Forbidden, InvalidRequest, Unauthorized
from hotbed.node.keys.keyring import Keyring
from hotbed.node.leases import Lease, tenant_id

COOKIE = "hotbed_session"
GOOD_S = 12 * 3600
REMEMBERED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Whose things are shown: one tenant's, or everybody's (None). `admin` may make the node do something."""

    tenant: str | None = None
    admin: bool = False
    key_id: str = ""

    def sees(self, lease: Lease | None) -> bool:
        """Whether what lives under a lease is this viewer's to see."""
        return self.tenant is None or tenant_id(lease) == self.tenant

    def check_admin(self) -> None:
        """Raise `Forbidden` for who is not the operator."""
        if not self.admin:
            raise Forbidden("that takes a key with the scope admin", hint="sign out, and sign in with one")


OPERATOR = Viewer(admin=True)


class Visitors:
    """The browsers that have signed in."""

    def __init__(self, keyring: Keyring | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._keyring = keyring
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[str, float]] = OrderedDict()  # by digest: the key's id, until when

    @property
    def need_key(self) -> bool:
        """Whether one has to sign in."""
        return self._keyring is not None and self._keyring.needed

    def viewer(self, request: Request) -> Viewer | None:
        """Who asks; None when he has yet to sign in. Raises `InvalidRequest`, `Forbidden`."""
        if not self.need_key:
            check_host(request)
            return OPERATOR
        assert self._keyring is not None, "who needs a key has a keyring"
        digest = _digest(request.cookies.get(COOKIE, ""))
        key_id, until_s = self._known.get(digest, ("", 0.0))
        if self._clock() >= until_s:
            self._known.pop(digest, None)
            return None
        try:
            key = self._keyring.get(key_id)
        except Unauthorized:
            self._known.pop(digest, None)
            return None
        return viewer_by(key.id, key.tenant, key.scopes)

    def sign_in(self, text: str) -> str:
        """The cookie of who showed a key. Raises `Unauthorized`, `Forbidden`."""
        if self._keyring is None:
            raise InvalidRequest("nobody needs to sign in here")
        key = self._keyring.find(text.strip())
        viewer_by(key.id, key.tenant, key.scopes)
        token = secrets.token_urlsafe(32)
        self._known[_digest(token)] = (key.id, self._clock() + GOOD_S)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return token

    def sign_out(self, request: Request) -> None:
        """Forget a browser. Idempotent."""
        self._known.pop(_digest(request.cookies.get(COOKIE, "")), None)


def viewer_by(key_id: str, tenant: str, scopes: frozenset[str]) -> Viewer:
    """What a key shows. Raises `Forbidden` for one that shows nothing."""
    if "admin" in scopes:
        return Viewer(admin=True, key_id=key_id)
    if "read" not in scopes:
        raise Forbidden("pages take a key with the scope read or admin", hint="`hotbed keys create --scopes` makes one")
    return Viewer(tenant=tenant, key_id=key_id)


def check_host(request: Request) -> None:
    """Raise `InvalidRequest` for a name that its owner may have pointed at this machine."""
    name = (urlsplit(f"//{request.headers.get('host', '')}").hostname or "").rstrip(".")
    if name == "localhost" or name.endswith(".localhost") or _is_address(name):
        return
    raise InvalidRequest(
        f"without keys, pages are served under an IP address or localhost only, not {name[:80]!r}",
        hint="use 127.0.0.1, or make a key with `hotbed keys create` and sign in",
    )


def check_origin(request: Request) -> None:
    """Raise `Forbidden` for a change that another site's page may have asked for."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    ours = urlsplit(origin).netloc == request.headers.get("host") if origin else site == "same-origin"
    if not ours or site not in (None, "same-origin"):
        raise Forbidden("that did not come from a page of this server", hint="reload the page and try again")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
