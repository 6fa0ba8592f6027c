"""Background work."""

from __future__ import annotations

import asyncio
import logging

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.nursery import Nursery


async def fail() -> None:
    """A task that goes wrong."""
    raise RuntimeError("broken")


def test_one_failure_is_logged_and_stops_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    """One sandbox's teardown going wrong must not be another's."""

    async def scenario() -> str:
        nursery = Nursery()
        nursery.start(fail(), name="fails")
        fine = nursery.start(asyncio.sleep(0, "fine"), name="fine")
        assert await nursery.wait_empty(timeout_s=5)
        return await fine

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(scenario()) == "fine"
    assert "task=fails" in caplog.text


def test_a_refusal_is_no_failure_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever asked for what there is not hears of it; an operator is not to be woken."""

    async def refuse() -> None:
        raise InvalidRequest("no")

    async def scenario() -> None:
        nursery = Nursery()
        nursery.start(refuse(), name="refused")
        assert await nursery.wait_empty(timeout_s=5)

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    assert [record.levelname for record in caplog.records if "task=refused" in record.message] == ["INFO"]


def test_waiting_has_an_end(caplog: pytest.LogCaptureFixture) -> None:
    """A teardown that hangs must not hang the shutdown."""

    async def scenario() -> None:
        nursery = Nursery()
        stuck = nursery.start(asyncio.sleep(3600), name="stuck")
        assert not await nursery.wait_empty(timeout_s=0.01)
        assert len(nursery) == 1
        await nursery.cancel_all()
        assert stuck.cancelled()
        assert await nursery.wait_empty(timeout_s=0)

    asyncio.run(scenario())
    assert caplog.text == ""
