"""Brokers in this process, and sandboxes that are none."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hotbed.runtime.egress.broker import Broker
from hotbed.runtime.egress.outlet import Home, Outlet


class Brokers:
    """Starts brokers in this process, and can lose them."""

    def __init__(self) -> None:
        self.channels: list[socket.socket] = []
        self._made: list[Broker] = []

    async def start(self) -> socket.socket:
        """Another one."""
        ours, theirs = socket.socketpair()
        self.channels.append(theirs)
        self._made.append(Broker(theirs))
        return ours

    async def gone(self) -> None:
        """All of them."""
        for broker in self._made:
            await asyncio.wait_for(broker.ended, 5)

    def tell(self) -> None:
        """Have the newest tell what was tried, as it does every moment."""
        for number, ward in self._made[-1]._wards.items():
            self._made[-1]._tell(number, ward)

    def lose(self) -> None:
        """As a kill would."""
        self.channels[-1].shutdown(socket.SHUT_RDWR)


@dataclass(kw_only=True)
class Boxed:
    """As much of a sandbox as has a way out."""

    home: Home
    id: int = 7
    outlet: Outlet | None = None
    environ: Mapping[str, str] = field(default_factory=dict)

    async def open(self, path: str, mode: Literal["r", "w", "a"], perm: int = 0o644) -> tuple[int, int]:
        """Nobody writes into it here."""
        raise AssertionError(path)
