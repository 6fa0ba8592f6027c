"""What a node does now and then: hands usage to the ledger, and looks for leaks.

A leak is a sandbox that the backend has and nobody in the node knows of, twice in a row: between two looks everything
that is being made or ended has moved on. It is counted and logged as an error. There should never be one, which is why
one is worth an alert, and why nothing tries to guess what to do about it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from hotbed.node.held import HeldBox
from hotbed.node.ledger.usage import UsageRow
from hotbed.node.meter import Meter
from hotbed.node.stats import Stats
from hotbed.runtime.base import Backend

EVERY_S = 5.0

log = logging.getLogger(__name__)


class Housekeeping:
    """The chores of one node. `close` does them a last time."""

    def __init__(
        self,
        backend: Backend,
        *,
        live: Collection[HeldBox],
        meter: Meter,
        stats: Stats,
        keep: Callable[[list[UsageRow]], None],
    ) -> None:
        self._backend = backend
        self._at_work: Callable[[], int] = lambda: 0
        self._live = live
        self._meter = meter
        self._stats = stats
        self._keep = keep
        self._timer: asyncio.TimerHandle | None = None
        self._excess_before = 0
        self._excess_known = 0

    def begin(self, at_work: Callable[[], int]) -> None:
        """Do them every few seconds from now on. `at_work` counts the sandboxes that are nobody's: a bake's."""
        self._at_work = at_work
        self._schedule()

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._tick)

    def close(self) -> None:
        """Stop, having handed over what was used to the end. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self.keep_usage()

    def keep_usage(self) -> None:
        """Hand over what was used."""
        for held in self._live:
            held.metered()
        if rows := self._meter.take():
            self._keep(rows)

    def look_for_leaks(self) -> int:
        """How many sandboxes were found that nobody knows of and that were not found before."""
        stats = self._backend.stats()
        parked = int(stats.get("spares", 0)) + int(stats.get("vessels", 0))
        excess = max(0, int(stats["boxes"]) - parked - len(self._live) - self._at_work())
        lasting, self._excess_before = min(excess, self._excess_before), excess
        found, self._excess_known = max(0, lasting - self._excess_known), lasting
        if found:
            self._stats.counts["leaks"] += found
            log.error("event=leak sandboxes=%d boxes=%d live=%d", found, stats["boxes"], len(self._live))
        return found

    def _tick(self) -> None:
        self.keep_usage()
        self.look_for_leaks()
        self._schedule()
