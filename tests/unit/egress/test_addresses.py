"""Which addresses are never reached by a name."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from hotbed.egress.addresses import covers, parse, plain, reaches_special, special_kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.8.8.8", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("169.254.169.254", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("10.1.2.3", "private"),
        ("172.31.255.255", "private"),
        ("192.168.0.1", "private"),
        ("100.64.0.1", "private"),
        ("fd12::1", "private"),
        ("::ffff:10.0.0.1", "private"),
        ("0.0.0.0", "reserved"),
        ("255.255.255.255", "reserved"),
        ("224.0.0.1", "multicast"),
        ("64:ff9b::7f00:1", "tunnel"),
        ("2002:7f00:1::", "tunnel"),
        ("::127.0.0.1", "tunnel"),
        ("93.184.215.14", ""),
        ("2606:2800:220:1::1", ""),
    ],
)
def test_each_special_address_has_its_kind(text: str, kind: str) -> None:
    """However it is written."""
    assert special_kind(ip_address(text)) == kind


def test_a_mapped_address_is_what_it_carries() -> None:
    """One destination, one value."""
    assert plain(ip_address("::ffff:1.2.3.4")) == ip_address("1.2.3.4")
    assert parse("[::ffff:1.2.3.4]") == ip_address("1.2.3.4")
    assert parse("0x7f.1") is None


def test_networks_that_hold_anything_special_are_told() -> None:
    """0.0.0.0/0 holds the loopback."""
    assert reaches_special(ip_network("0.0.0.0/0"))
    assert not reaches_special(ip_network("93.184.215.0/24"))


def test_covering_needs_one_family() -> None:
    """An IPv4 network is no part of an IPv6 one."""
    assert covers(ip_network("10.0.0.0/8"), ip_network("10.1.0.0/16"))
    assert not covers(ip_network("10.1.0.0/16"), ip_network("10.0.0.0/8"))
    assert not covers(ip_network("::/0"), ip_network("10.0.0.0/8"))
