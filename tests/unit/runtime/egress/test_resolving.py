"""Names to addresses, off the loop."""

from __future__ import annotations

import asyncio
from ipaddress import ip_address

import pytest

from hotbed.egress.addresses import Address
from hotbed.runtime.egress import resolving
from hotbed.runtime.egress.resolving import Resolver, Unresolved


def test_names_of_this_host_resolve() -> None:
    """By its own resolver, files included."""
    assert ip_address("127.0.0.1") in resolving.look_up("localhost") or ip_address("::1") in resolving.look_up(
        "localhost"
    )


def test_an_answer_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By however many at once, and for a while."""
    asked: list[str] = []

    def answer(name: str) -> tuple[Address, ...]:
        asked.append(name)
        return (ip_address("93.184.215.14"),)

    monkeypatch.setattr(resolving, "look_up", answer)

    async def act() -> None:
        resolver = Resolver()
        await asyncio.gather(*(resolver.addresses("a.org") for _ in range(5)))
        assert await resolver.addresses("a.org") == (ip_address("93.184.215.14"),)
        resolver.close()

    asyncio.run(act())
    assert asked == ["a.org"]


def test_a_failure_is_remembered_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that asks in a loop asks the broker, not the world."""
    asked: list[str] = []

    def answer(name: str) -> tuple[Address, ...]:
        asked.append(name)
        raise Unresolved(name, final=True)

    monkeypatch.setattr(resolving, "look_up", answer)

    async def act() -> None:
        resolver = Resolver()
        for _ in range(3):
            with pytest.raises(Unresolved, match="does not resolve"):
                await resolver.addresses("a.org")
        resolver.close()

    asyncio.run(act())
    assert asked == ["a.org"]
