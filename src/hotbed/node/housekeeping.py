"""What a node does now and then: hands usage to the ledger, and looks for leaks.

A leak is a sandbox that the backend has and nobody in the node knows of, for a minute: whatever is being made or ended
has been given up by then. It is counted and logged as an error. There should never be one, which is why one is worth an
alert, and why nothing tries to guess what to do about it. Sandboxes are told apart by their numbers, since a busy node
has some on their way in and out whenever one looks.
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
LEAK_LOOKS = 12

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
        self._nobodys: dict[int, int] = {}  # for how many looks
        self._leaks = 0

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
        """How many leaks were found that were not found before."""
        nobodys = self._backend.in_use() - {held.box.id for held in self._live}
        self._nobodys = {number: self._nobodys.get(number, 0) + 1 for number in nobodys}
        lasting = [number for number, looks in self._nobodys.items() if looks > LEAK_LOOKS]
        before, self._leaks = self._leaks, max(0, len(lasting) - self._at_work())
        found = max(0, self._leaks - before)
        if found:
            self._stats.counts["leaks"] += found
            log.error("event=leak sandboxes=%d numbers=%s live=%d", found, sorted(lasting), len(self._live))
        return found

    def _tick(self) -> None:
        self.keep_usage()
        self.look_for_leaks()
        self._schedule()
