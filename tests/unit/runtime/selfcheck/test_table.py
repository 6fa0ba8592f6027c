"""The table holds each claim once, and telling a verdict never stops the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hotbed.errors import SandboxFailed
from hotbed.runtime.selfcheck import table
from hotbed.runtime.selfcheck.bench import Attempt, Bench, Broken


def test_each_claim_has_one_attempt() -> None:
    """By name, as the page and the tests have it."""
    claims = [attempt.claim for attempt in table.ATTEMPTS]

    assert len(set(claims)) == len(claims) > 30
    assert table.find(claims[3]) is table.ATTEMPTS[3]
    with pytest.raises(KeyError):
        table.find("no-such-claim")


def test_every_attempt_gets_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held, broken, or not to be run at all: all three are told."""

    async def of(backend: Any) -> None:
        return None

    async def held(bench: Bench) -> None:
        return None

    async def broken(bench: Bench) -> None:
        raise Broken("it got out")

    async def failed(bench: Bench) -> None:
        raise SandboxFailed("no sandbox")

    runs = {"a": held, "b": broken, "c": failed}
    monkeypatch.setattr(Bench, "of", of)
    monkeypatch.setattr(table, "ATTEMPTS", tuple(Attempt(claim=name, run=run) for name, run in runs.items()))

    async def collect() -> list[tuple[str, bool, str]]:
        backend: Any = None
        return [(v.claim, v.held, v.detail) async for v in table.run_all(backend)]

    assert asyncio.run(collect()) == [("a", True, ""), ("b", False, "it got out"), ("c", False, "no sandbox")]
