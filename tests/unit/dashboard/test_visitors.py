"""Who looks, and how the node knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request

from hotbed.dashboard.visitors import (
    COOKIE,
    GOOD_S,
    OPERATOR,
    REMEMBERED,
    Viewer,
    Visitors,
    check_host,
    check_origin,
)
from hotbed.errors import Forbidden, InvalidRequest, Unauthorized
from hotbed.node.keys.key import Key, key_text, new_secret
from hotbed.node.keys.keyring import Keyring
from hotbed.node.keys.store import KeyStore
from hotbed.node.leases import Lease
from hotbed.node.tenants import DEFAULT_TIERS, Tenant
from tests.unit.dashboard.looking import Always


def request(**headers: str) -> Request:
    """A request with these headers."""
    raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return Request({"type": "http", "headers": raw})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KeyStore]:
    """What the command line writes to."""
    made = KeyStore(tmp_path)
    yield made
    made.close()


@pytest.fixture
def keyring(tmp_path: Path) -> Iterator[Keyring]:
    """What the pages read."""
    made = Keyring(KeyStore(tmp_path), clock=Always())
    yield made
    made.close()


def add(store: KeyStore, *scopes: str) -> tuple[Key, str]:
    """A new key and its text."""
    key, secret = Key(tenant="acme", tier="pro", scopes=frozenset(scopes)), new_secret()
    store.add(key, secret)
    return key, key_text(key, secret)


def test_without_keys_everybody_is_the_operator(keyring: Keyring) -> None:
    """As in the API: a Unix socket never asks, a port does once a key was made."""
    local = request(host="localhost:8080")

    assert Visitors(None).viewer(local) is OPERATOR
    assert Visitors(keyring).viewer(local) is OPERATOR


def test_a_key_is_shown_once_and_a_cookie_from_then_on(store: KeyStore, keyring: Keyring) -> None:
    """Until its time is up, it is signed out, or the key is revoked."""
    now = [0.0]
    visitors = Visitors(keyring, clock=lambda: now[0])
    admin, text = add(store, "admin")
    reader, other = add(store, "read")
    cookie = request(cookie=f"{COOKIE}={visitors.sign_in(text)}")
    second = request(cookie=f"{COOKIE}={visitors.sign_in(f' {other} ')}")

    assert visitors.viewer(cookie) == Viewer(admin=True, key_id=admin.id)
    assert visitors.viewer(second) == Viewer(tenant="acme", key_id=reader.id)
    for nobody in (request(), request(cookie=f"{COOKIE}=guess"), request(cookie=f"{COOKIE}=")):
        assert visitors.viewer(nobody) is None

    visitors.sign_out(second)
    visitors.sign_out(second)
    assert visitors.viewer(second) is None
    store.revoke(admin.id)
    assert visitors.viewer(cookie) is None
    third = request(cookie=f"{COOKIE}={visitors.sign_in(add(store, 'read')[1])}")
    now[0] = GOOD_S
    assert visitors.viewer(third) is None


def test_a_key_that_shows_nothing_does_not_sign_in(store: KeyStore, keyring: Keyring) -> None:
    """One that may only run is for a trainer, not for a browser; a wrong one is told nothing."""
    visitors = Visitors(keyring)
    with pytest.raises(Forbidden, match="read or admin"):
        visitors.sign_in(add(store, "run")[1])
    for wrong in ("", "hb_00000000_" + "0" * 64, "é"):
        with pytest.raises(Unauthorized):
            visitors.sign_in(wrong)
    with pytest.raises(InvalidRequest):
        Visitors(None).sign_in("")


def test_browsers_are_remembered_within_bounds(store: KeyStore, keyring: Keyring) -> None:
    """Signing in again and again forgets the oldest."""
    visitors = Visitors(keyring)
    _, text = add(store, "read")
    first = request(cookie=f"{COOKIE}={visitors.sign_in(text)}")
    for _ in range(REMEMBERED):
        visitors.sign_in(text)

    assert visitors.viewer(first) is None


def test_a_viewer_sees_what_is_its_tenants() -> None:
    """And the operator sees all of it."""
    tenants = [Tenant(name, DEFAULT_TIERS["pro"]) for name in ("acme", "bob")]
    leases = [Lease(tenant=tenants[0]), Lease(tenant=tenants[1]), Lease(), None]

    assert [Viewer(tenant="acme").sees(lease) for lease in leases] == [True, False, False, False]
    assert all(OPERATOR.sees(lease) for lease in leases)
    with pytest.raises(Forbidden, match="scope admin"):
        Viewer(tenant="acme").check_admin()
    OPERATOR.check_admin()


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "10.0.0.7", "a.localhost:9"]
)
def test_an_address_cannot_be_pointed_elsewhere(host: str) -> None:
    """Nor can localhost."""
    check_host(request(host=host))


@pytest.mark.parametrize("host", ["evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "", "x:y:z"])
def test_a_name_of_somebodys_is_refused_without_keys(host: str) -> None:
    """Its owner can let it resolve to 127.0.0.1, and read these pages from a page of his."""
    with pytest.raises(InvalidRequest, match="IP address or localhost"):
        check_host(request(host=host))


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9090"},
        {"origin": "http://127.0.0.1:8080", "sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
        {},
    ],
)
def test_a_change_must_come_from_our_own_page(headers: dict[str, str]) -> None:
    """Another port of this machine is another site, whatever cookies it shares."""
    with pytest.raises(Forbidden, match="page of this server"):
        check_origin(request(host="127.0.0.1:8080", **headers))


def test_our_own_page_may_change_something() -> None:
    """Behind a proxy that ends TLS the origin's scheme is not ours, and its host is."""
    for headers in (
        {"origin": "http://127.0.0.1:8080"},
        {"origin": "https://127.0.0.1:8080", "sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "same-origin"},
    ):
        check_origin(request(host="127.0.0.1:8080", **headers))
