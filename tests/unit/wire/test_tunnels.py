"""What is asked of a port is checked on both ends."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.wire.tunnels import ConnectUrlRequest


@pytest.mark.parametrize(
    "fields", [{"port": 0}, {"port": 65536}, {"port": True}, {"port": 80, "ttl_s": 0}, {"port": 80, "ttl_s": 4000}]
)
def test_a_port_is_a_port_and_time_is_bounded(fields: dict[str, Any]) -> None:
    """An address that never expires is a key."""
    with pytest.raises(InvalidRequest):
        ConnectUrlRequest(**fields)
