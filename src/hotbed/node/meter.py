"""What each tenant uses, by the hour: counted as it happens, handed to the ledger now and then.

The hour is the one in which a thing ended. A sandbox's seconds are the exception: one that lives long is counted as it
goes, by `HeldBox.metered`. CPU is known when a sandbox has ended and its processes were reaped, and counted then.

What is handed over are sums since this node started, so that handing them over twice changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from hotbed.node.ledger.usage import HOUR_S, UsageRow

KEPT_HOURS = 2  # how long a database may be away before an hour is forgotten
_COUNTED = {"create": "sandboxes", "rollout": "rollouts", "exec": "execs", "grade": "grades"}


@dataclass(slots=True)
class Used:
    """One tenant's hour so far."""

    sandboxes: int = 0
    rollouts: int = 0
    execs: int = 0
    grades: int = 0
    sandbox_s: float = 0.0
    cpu_s: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0


class Meter:
    """The hours that are not over, or not yet known to be kept."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._hours: dict[tuple[str, int], Used] = {}
        self._changed: set[tuple[str, int]] = set()

    def of(self, tenant: str) -> Used:
        """This hour of a tenant, to be added to at once."""
        key = (tenant, int(self._clock()) // HOUR_S * HOUR_S)
        self._changed.add(key)
        used = self._hours.get(key)
        if used is None:
            used = self._hours[key] = Used()
        return used

    def count(self, tenant: str, kind: str) -> None:
        """One thing was done, by the ledger's word for it."""
        name = _COUNTED.get(kind)
        if name is not None:
            used = self.of(tenant)
            setattr(used, name, getattr(used, name) + 1)

    def moved(self, tenant: str, *, received: int, sent: int) -> None:
        """Bytes of a request and of its answer."""
        used = self.of(tenant)
        used.bytes_in += received
        used.bytes_out += sent

    def take(self) -> list[UsageRow]:
        """What has changed since the last time; hours long over are forgotten."""
        rows = [
            UsageRow(tenant=key[0], hour=key[1], **asdict(self._hours[key]))
            for key in sorted(self._changed)
            if key in self._hours
        ]
        self._changed.clear()
        oldest = int(self._clock()) - KEPT_HOURS * HOUR_S
        for key in [key for key in self._hours if key[1] + HOUR_S < oldest]:
            del self._hours[key]
        return rows
