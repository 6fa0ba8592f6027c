"""Holding a sandbox still, by whichever means there is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from hotbed.errors import SandboxFailed
from hotbed.runtime.frost import Frost
from hotbed.runtime.linux.freezer import Freezer


class Asked:
    """A sandbox without a cgroup."""

    id = 1
    slot: Any = None

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.talk = SimpleNamespace(check_open=lambda: None)

    def is_alive(self) -> bool:
        """Yes."""
        return True

    async def ask_plainly(self, op: str, _timeout_s: float) -> dict[str, Any]:
        """Note what was asked."""
        self.asked.append(op)
        return {}


def test_two_who_want_it_still_are_two() -> None:
    """A fork of a suspended sandbox must not wake it."""

    async def scenario() -> None:
        box: Any = Asked()
        frost = Frost(None, "run")
        assert await frost.begin(box) == "signals"
        async with frost.held(box) as how:
            assert how == "signals"
        assert box.asked == ["still"]
        await frost.end(box)
        assert box.asked == ["still", "go"]
        frost.forget(box.id)

    asyncio.run(scenario())


def test_a_group_that_cannot_be_frozen_is_our_failure(tmp_path: Any) -> None:
    """Nothing weaker is done instead."""

    async def scenario() -> None:
        box: Any = Asked()
        box.slot = SimpleNamespace(directories=[tmp_path / "none"], members=list)
        with pytest.raises(SandboxFailed, match="frozen"):
            await Frost(Freezer(own=True), "run").begin(box)
        assert box.asked == []

    asyncio.run(scenario())


def test_who_is_not_waited_for_any_more_is_let_go() -> None:
    """A client that hangs up while a sandbox is being held leaves no sandbox that stands still for ever."""

    class Slow(Asked):
        async def ask_plainly(self, op: str, _timeout_s: float) -> dict[str, Any]:
            await asyncio.sleep(0.01)
            return await super().ask_plainly(op, _timeout_s)

    async def scenario() -> None:
        box: Any = Slow()
        frost = Frost(None, "run")
        waiting = asyncio.ensure_future(frost.begin(box))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        while frost._undoings:
            await asyncio.sleep(0.001)
        assert box.asked == ["still", "go"]

    asyncio.run(scenario())
