"""What was asked of the broker and is not answered yet."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.errors import SandboxFailed
from hotbed.runtime.egress import answers
from hotbed.runtime.egress.answers import Answers


def test_each_gets_its_own_answer() -> None:
    """Whatever the order, and one that nobody waits for is nobody's."""

    async def act() -> list[object]:
        waiting = Answers()
        asked = [asyncio.ensure_future(waiting.hear(("ask", number), lambda: None)) for number in (1, 2)]
        await asyncio.sleep(0)
        waiting.arrived(("ask", 3), {"is": 3})
        waiting.arrived(("ask", 2), {"is": 2})
        waiting.arrived(("ask", 1), {"is": 1})
        waiting.arrived(("ask", 1), {"is": "too late"})
        return [(await answer)["is"] for answer in asked]

    assert asyncio.run(act()) == [1, 2]


def test_a_refusal_and_an_end_are_failures() -> None:
    """Of the one it is for, and of all that wait."""

    async def act(end: bool) -> None:
        waiting = Answers()
        asked = asyncio.ensure_future(waiting.hear(("opened", 7), lambda: None))
        await asyncio.sleep(0)
        waiting.refused(("opened", 8), "not this one")
        if end:
            waiting.none_will_come("gone")
        else:
            waiting.refused(("opened", 7), "no door")
        await asked

    with pytest.raises(SandboxFailed, match="gone"):
        asyncio.run(act(end=True))
    with pytest.raises(SandboxFailed, match="no door"):
        asyncio.run(act(end=False))


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for ever."""
    monkeypatch.setattr(answers, "PATIENCE_S", 0.01)
    with pytest.raises(SandboxFailed, match="no answer for 0 s"):
        asyncio.run(Answers().hear("x", lambda: None))
