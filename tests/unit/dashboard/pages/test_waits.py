"""What a trainer can have waited for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hotbed.dashboard.pages.waits import divided
from hotbed.node.leases import Lease
from hotbed.node.tenants import DEFAULT_TIERS, Tenant
from hotbed.node.waits import Step, Waits
from tests.unit.dashboard.looking import looking, words


def test_a_steps_parts_add_up_to_its_length() -> None:
    """Short pauses within it are nobody's requests: they are the client's."""
    step = Step(begun_s=0, ended_s=10, waited_s=4, requests=3, seconds={"exec": 6.0, "fork": 2.0})

    parts = divided(step)

    assert parts == pytest.approx({"exec": 3.0, "fork": 1.0, "client": 6.0})
    assert "client" not in divided(step, client=False)


def test_steps_are_told_by_client(tmp_path: Path) -> None:
    """Six seconds of thinking and two of running make a quarter."""
    now = [100.0]

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            here.node.waits = Waits(clock=lambda: now[0])
            for _ in range(5):
                with here.node.waits.begin(None, "exec"):
                    now[0] += 2
                now[0] += 6
            told = words(await here.get("/waits"))
            assert "25 % of its last 4 steps (8.0 s each) had a request in flight: exec 25 %" in told
            assert "Without a lease silent for 6.0 s" in told
            assert ": ." not in told
            assert "the tallest is 8.0 s" in told
            with here.node.waits.begin(None, "fork"):
                now[0] += 0.001
            assert "fork" not in words(await here.get("/parts/waits")).partition("of its last")[2].partition(".")[0]
            joined = words(await here.get("/parts/waits?pause=10"))
            assert "One step so far" in joined

    asyncio.run(scenario())


def test_a_tenant_sees_its_own_clients(tmp_path: Path) -> None:
    """How busy others are is not its business."""

    async def scenario() -> None:
        async with looking(tmp_path, keys=True) as here:
            with here.node.waits.begin(Lease(tenant=Tenant("bob", DEFAULT_TIERS["pro"]))):
                pass
            assert "No client has asked" in words(await here.get("/waits", cookie=await here.sign_in("read")))
            assert "tenant bob" in words(await here.get("/waits", cookie=await here.sign_in("admin")))

    asyncio.run(scenario())
