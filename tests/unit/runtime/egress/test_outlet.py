"""One sandbox's way out."""

from __future__ import annotations

from hotbed.egress.policy import parse
from hotbed.runtime.egress.outlet import PORTS, ports_of


def test_doors_are_where_programs_usually_dial_and_where_the_policy_says() -> None:
    """Each once."""
    assert ports_of(parse("open", {})) == PORTS
    assert ports_of(parse({"allow": ["a.org:443,8443", "b.org:8443"]}, {})) == (*PORTS, 8443)
