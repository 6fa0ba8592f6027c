"""Entries of a policy, in text and as objects."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from hotbed.egress.entries import entry_of, normal_name
from hotbed.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "host", "ports"),
    [
        ("example.org", "example.org", ()),
        ("Example.ORG.", "example.org", ()),
        ("example.org:443", "example.org", (443,)),
        ("example.org:80,443", "example.org", (80, 443)),
        ("bücher.example", "xn--bcher-kva.example", ()),
    ],
)
def test_domains_are_read(text: str, host: str, ports: tuple[int, ...]) -> None:
    """Lower case, ASCII, with their ports."""
    entry = entry_of(text, "here")

    assert (entry.host, entry.ports) == (host, ports)


def test_a_wildcard_is_about_what_is_below() -> None:
    """At any depth, and not about the domain itself."""
    entry = entry_of("*.example.org", "here")

    assert entry.names("a.example.org") and entry.names("a.b.example.org")
    assert not entry.names("example.org") and not entry.names("notexample.org")


def test_a_denied_domain_takes_its_subdomains_along() -> None:
    """Where the question is what to refuse, a domain is all of it."""
    entry = entry_of("example.org", "here")

    assert not entry.names("a.example.org") and entry.names("a.example.org", subdomains=True)
    assert not entry.names("badexample.org", subdomains=True)


@pytest.mark.parametrize("text", ["192.0.2.0/24", "192.0.2.7", "[2001:db8::/32]:443", "2001:db8::7"])
def test_networks_are_read(text: str) -> None:
    """An address is a network of one."""
    entry = entry_of(text, "here")

    assert entry.network is not None
    assert entry.holds(ip_address("192.0.2.7")) or entry.holds(ip_address("2001:db8::7"))


def test_the_object_form_says_more() -> None:
    """Methods, budgets and the addresses that a name may lead to."""
    given = {"host": "api.example.org", "ports": [443], "methods": ["get"], "bytes": 10, "addresses": ["10.0.0.0/8"]}

    entry = entry_of(given, "here")

    assert entry.methods == ("GET",) and entry.max_bytes == 10
    assert entry_of(entry.to_wire(), "there") == entry


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("https://example.org/x", "is a URL"),
        ("exa mple.org", "is no domain name"),
        ("-x.org", "is no domain name"),
        ("1.2.3", "is no domain name"),
        ("*", "is no domain name"),
        ("a.*.org", "is no domain name"),
        ("example.org:http", "is no port"),
        ("example.org:70000", "is no port"),
        ("10.0.0.1/8", "is no CIDR block"),
        ("", "is no domain name"),
        (7, "is no entry"),
        ({"host": "a.org", "port": 1}, "'port' is not known"),
        ({"ports": [1]}, "host is missing"),
        ({"host": "a.org", "methods": ["G T"]}, "is no HTTP method"),
        ({"host": "a.org", "bytes": -1}, "must be a whole number"),
        ({"host": "a.org", "addresses": ["b.org"]}, "is no address"),
        ({"host": "a.org", "methods": "GET"}, "methods is a list"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(given: object, named: str) -> None:
    """A list of two hundred lines is mended by the one that is wrong."""
    with pytest.raises(InvalidRequest, match=named) as caught:
        entry_of(given, "egress.allow[3]")

    assert caught.value.message.startswith("egress.allow[3]: ")


def test_a_name_of_no_sane_form_is_none() -> None:
    """Too long, empty labels, a NUL."""
    for text in ("a" * 64 + ".org", "a..b", ".".join(["abcdefgh"] * 40), "a\0b", "a..", "."):
        with pytest.raises(ValueError, match="is no domain name"):
            normal_name(text)
