"""Where an HTTP request is to go, and how it is sent on."""

from __future__ import annotations

from ipaddress import ip_address

import h11
import pytest

from hotbed.egress.decisions import Target
from hotbed.runtime.egress.targets import Refused
from hotbed.runtime.egress.web import asked_for, sent_on, with_headers

DIALLED = Target(port=80, name="a.org")


def request(target: str, *headers: tuple[str, str], method: str = "GET") -> h11.Request:
    """A request as it was read."""
    return h11.Request(method=method, target=target, headers=list(headers), http_version="1.1")


def test_a_request_says_its_host() -> None:
    """Beside where the connection goes."""
    assert asked_for(request("/x", ("host", "a.org")), DIALLED) == (DIALLED, "a.org", b"/x")
    assert asked_for(request("/x", ("host", "b.org:80")), DIALLED)[1] == "b.org"


def test_a_proxy_request_names_it_itself() -> None:
    """Its path is what is left."""
    target, said, path = asked_for(request("http://a.org:8080/x?y=1", ("host", "a.org:8080")), None)

    assert (target, said, path) == (Target(port=8080, name="a.org"), "a.org", b"/x?y=1")


@pytest.mark.parametrize(
    ("target", "host", "dialled"),
    [
        ("/x", "a.org", None),
        ("http://a.org/", "b.org", None),
        ("http://b.org/", "b.org", DIALLED),
        ("https://a.org/", "a.org", None),
        ("http://u@a.org/", "a.org", None),
        ("ftp://a.org/", "a.org", None),
        ("/x", "10.0.0.1", DIALLED),
        ("/x", "a b", DIALLED),
    ],
)
def test_one_that_says_two_things_is_refused(target: str, host: str, dialled: Target | None) -> None:
    """Who decides and who answers could read it differently."""
    with pytest.raises(Refused):
        asked_for(request(target, ("host", host)), dialled)


def test_an_address_as_host_must_be_the_one_that_was_dialled() -> None:
    """Then it says nothing more."""
    dialled = Target(port=80, address=ip_address("93.184.215.14"))

    assert asked_for(request("/", ("host", "93.184.215.14")), dialled) == (dialled, "", b"/")


def test_what_is_sent_on_keeps_its_own_headers_only() -> None:
    """What is about the connection or for a proxy stays."""
    given = request("/x", ("host", "a.org"), ("proxy-authorization", "x"), ("connection", "keep-alive"), ("x-own", "1"))

    sent = sent_on(given, b"/x", upgrade=False)

    assert list(sent.headers) == [(b"host", b"a.org"), (b"x-own", b"1"), (b"connection", b"close")]


def test_what_is_added_replaces_what_the_program_says() -> None:
    """And the answer comes in a form that can be looked through."""
    given = request("/", ("host", "a.org"), ("authorization", "mine"), ("accept-encoding", "gzip"))

    assert with_headers(given, []) is given
    assert list(with_headers(given, [(b"authorization", b"ours")]).headers) == [
        (b"host", b"a.org"),
        (b"authorization", b"ours"),
    ]


def test_inside_tls_a_whole_url_is_one_of_tls() -> None:
    """And of no other scheme."""
    target, _, path = asked_for(request("https://a.org/x", ("host", "a.org")), None, "https")

    assert (target, path) == (Target(port=443, name="a.org"), b"/x")
    with pytest.raises(Refused, match="no URL"):
        asked_for(request("http://a.org/x", ("host", "a.org")), None, "https")
