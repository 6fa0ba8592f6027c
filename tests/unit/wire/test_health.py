"""What the node says of itself."""

from __future__ import annotations

from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.health import LeaseGranted


def test_a_granted_lease_survives_the_wire() -> None:
    """It is the first line that a client reads."""
    lease = LeaseGranted(lease_id="ab", ttl_s=15.0)

    assert from_wire(LeaseGranted, to_wire(lease)) == lease
