"""The certificates of hosts that are read."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.node.authority import Authority
from hotbed.runtime.egress import certificates
from hotbed.runtime.egress.certificates import Certificates
from hotbed.runtime.egress.targets import Refused


def test_the_node_is_asked_once_for_all_who_wait() -> None:
    """Each of them gets the same."""

    async def act() -> tuple[list[str], int]:
        asked: list[str] = []
        found = Certificates(asked.append)
        waiting = [asyncio.ensure_future(found.context("a.org")) for _ in range(5)]
        await asyncio.sleep(0)
        found.tell("a.org", Authority().chain_pem("a.org"))
        return asked, len(set(await asyncio.gather(*waiting)))

    assert asyncio.run(act()) == (["a.org"], 1)


def test_no_answer_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is let go unread for want of a certificate."""
    monkeypatch.setattr(certificates, "PATIENCE_S", 0.01)

    async def act() -> None:
        found = Certificates(lambda _: None)
        with pytest.raises(Refused, match="no certificate"):
            await found.context("a.org")
        cannot = Certificates(lambda name: cannot.tell(name, b""))
        with pytest.raises(Refused, match="no certificate"):
            await cannot.context("a.org")
        found.tell("unknown.org", b"")

    asyncio.run(act())
