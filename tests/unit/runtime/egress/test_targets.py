"""Hosts in requests."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from hotbed.runtime.egress.targets import Refused, target_from


def test_names_and_addresses_are_told_apart() -> None:
    """In every spelling that programs use."""
    assert target_from("A.org.", 80).name == "a.org"
    assert target_from("[::1]", 80).address == ip_address("::1")
    assert target_from("::ffff:10.0.0.1", 80).address == ip_address("10.0.0.1")


@pytest.mark.parametrize("host", ["", "a b", "2130706433", "0x7f000001", "127.1", "0177.0.0.1", "a\r\nb", "a_%.org"])
def test_what_is_neither_is_refused(host: str) -> None:
    """Other spellings of addresses would be resolved into what was not checked."""
    with pytest.raises(Refused):
        target_from(host, 80)
