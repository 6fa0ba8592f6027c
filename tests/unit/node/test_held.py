"""A live sandbox and what it occupies."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.errors import SandboxFailed
from hotbed.node.held import HeldBox
from hotbed.node.leases import Leases
from hotbed.node.meter import Meter
from hotbed.node.nursery import Nursery
from hotbed.node.scheduler import Admission


class SlowBox:
    """A box whose teardown takes until it is told."""

    id = 7

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.kills = 0
        self.broken = False

    def cpu_s(self) -> float:
        """What it took."""
        return 1.5

    async def kill(self) -> None:
        """End, when allowed."""
        self.kills += 1
        await self.may_end.wait()
        if self.broken:
            raise SandboxFailed("would not die")


@pytest.mark.parametrize("broken", [False, True])
def test_a_sandbox_counts_until_it_is_really_gone(broken: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Else a burst of short rollouts would hold far more sandboxes than the limit."""

    async def scenario() -> None:
        admission, nursery = Admission(limit=1, queue_limit=1, wait_s=1), Nursery()
        lease, box, reasons = Leases().open(), SlowBox(), list[str]()
        live: set[HeldBox] = set()
        turn = await admission.acquire("a")
        meter = Meter()
        held = HeldBox(box, turn=turn, lease=lease, nursery=nursery, live=live, meter=meter)  # type: ignore[arg-type]  # enough of a box
        lease.join(held)
        held.on_end = reasons.append
        box.broken = broken

        assert not held.is_ending
        held.discard("done")
        held.discard("again")
        assert held.is_ending
        assert held.on_end is None  # who was to be told holds it, and would be freed by a collection only
        await asyncio.sleep(0)
        assert (admission.running, len(lease), live) == (1, 1, {held})

        box.may_end.set()
        await held.end("third")
        assert (admission.running, len(lease), len(live), box.kills, reasons) == (0, 0, 0, 1, ["done"])
        assert meter.of("").cpu_s == 1.5
        assert meter.of("").sandbox_s > 0

    asyncio.run(scenario())
    assert ("kill_failed" in caplog.text) == broken
