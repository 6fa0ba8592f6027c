"""Addresses that are good inside one sandbox."""

from __future__ import annotations

from ipaddress import ip_address

from hotbed.runtime.egress import names
from hotbed.runtime.egress.names import Names


def test_both_addresses_lead_back_to_the_name() -> None:
    """And stay the same."""
    found = Names()
    pair = found.addresses("a.org")

    assert pair is not None and [found.name_of(address) for address in pair] == ["a.org", "a.org"]
    assert found.addresses("a.org") == pair and found.addresses("b.org") != pair


def test_what_was_not_given_out_leads_nowhere() -> None:
    """In our range it is no name, outside it is none of ours."""
    assert Names().name_of(ip_address("198.18.0.9")) == ""
    assert Names().name_of(ip_address("93.184.215.14")) is None


def test_a_program_cannot_ask_for_names_without_end() -> None:
    """Each costs memory of the broker."""
    found = Names()
    for number in range(names.NAMES_LIMIT):
        found.addresses(f"n{number}.org")

    assert found.addresses("one.more") is None
    assert found.addresses("n7.org") is not None
