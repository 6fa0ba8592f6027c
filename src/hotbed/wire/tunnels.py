"""Ports of a sandbox: an address that opens one, and the words of the tunnel behind it."""

from __future__ import annotations

from dataclasses import dataclass

from hotbed.wire.checks import require, require_positive

CONNECT_SOCKET = "/v1/sandboxes/{id}/connect"
EOF = "eof"
TTL_LIMIT_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectUrlRequest:
    """Which port to open, and for how long new connections may be made by the address."""

    port: int
    ttl_s: float = 600.0

    def __post_init__(self) -> None:
        fits = type(self.port) is int and 0 < self.port <= 65535
        require(fits, f"port must be 1 to 65535, not {self.port!r}")
        require_positive("ttl_s", self.ttl_s)
        require(self.ttl_s <= TTL_LIMIT_S, f"ttl_s must be at most {TTL_LIMIT_S:.0f}, not {self.ttl_s!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectUrl:
    """A WebSocket address. Whoever has it may open that port until then. `expires_at` is RFC 3339 in UTC."""

    url: str
    expires_at: str
