"""Ports of a sandbox: an address that opens one, and the words of the tunnel behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from hotbed.wire.checks import require, require_positive

CONNECT_SOCKET = "/v1/sandboxes/{id}/connect"
EOF = "eof"
TTL_LIMIT_S = 3600.0
Protocol = Literal["tcp", "cdp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectUrlRequest:
    """Which port to open, and for how long new connections may be made by the address.

    `tcp` carries its bytes; `cdp` is the DevTools socket of the browser that listens there.
    """

    port: int
    ttl_s: float = 600.0
    protocol: Protocol = "tcp"

    def __post_init__(self) -> None:
        fits = type(self.port) is int and 0 < self.port <= 65535
        require(fits, f"port must be 1 to 65535, not {self.port!r}")
        require_positive("ttl_s", self.ttl_s)
        require(self.ttl_s <= TTL_LIMIT_S, f"ttl_s must be at most {TTL_LIMIT_S:.0f}, not {self.ttl_s!r}")
        check_protocol(self.protocol)


def check_protocol(name: object) -> None:
    """Raise `InvalidRequest` for what a tunnel does not speak."""
    require(name in get_args(Protocol), f"protocol must be {' or '.join(get_args(Protocol))}, not {name!r:.40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectUrl:
    """A WebSocket address. Whoever has it may open that port until then. `expires_at` is RFC 3339 in UTC."""

    url: str
    expires_at: str
