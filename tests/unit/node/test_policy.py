"""The node's promises."""

from __future__ import annotations

from pathlib import Path

from hotbed.node.policy import Policy
from tests.unit.node.nodes import POLICY


def test_pools_are_told_what_of_it_is_about_them() -> None:
    """One value is passed down, and each part takes its own."""
    told = Policy(**{**POLICY, "home": "/srv/hotbed", "boltz_slots": 3}).pools

    assert (told.home, told.boltz_slots, told.ttl_s) == (Path("/srv/hotbed"), 3, POLICY["ttl_s"])
