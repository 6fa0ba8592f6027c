"""Sandboxes parked with their doors made."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from hotbed.egress.policy import Policy, parse
from hotbed.runtime.doored import Doored
from hotbed.runtime.egress.outlet import PORTS


def at(port: int) -> Policy:
    """A policy that needs a door there."""
    return parse({"allow": [f"a.org:{port}"]}, {})


class Boxes:
    """Makes them, and knows what became of each."""

    def __init__(self) -> None:
        self.made: list[tuple[int, ...]] = []
        self.killed: list[tuple[int, ...]] = []

    async def make(self, ports: tuple[int, ...]) -> Any:
        """One more."""
        self.made.append(ports)

        async def kill() -> None:
            self.killed.append(ports)

        lives = {"is_born": lambda: True, "is_alive": lambda: True, "when_gone": lambda _: None}
        return SimpleNamespace(ports=ports, kill=kill, **lives)


async def filled(doored: Doored, policy: Policy) -> Any:
    """One of the stock, once there is one."""
    for _ in range(1000):
        found: Any = doored.take(policy)
        if found is not None:
            return found
        await asyncio.sleep(0.005)
    raise AssertionError("none was parked")


def test_a_stock_is_made_from_its_first_use_on_and_for_its_ports() -> None:
    """Nobody pays for doors that nobody asks for."""

    async def act() -> None:
        boxes = Boxes()
        doored = Doored(2, boxes.make)
        assert len(doored) == 0 and boxes.made == []
        assert doored.take(parse("open", {})) is None
        assert (await filled(doored, parse("open", {}))).ports == PORTS
        assert (await filled(doored, at(8443))).ports == (*PORTS, 8443)
        for stock in doored.stocks():
            await stock.tend()
        await doored.close()
        await doored.close()
        assert len(doored) == 0

    asyncio.run(act())


def test_the_stock_that_was_not_used_for_longest_makes_room() -> None:
    """However many ports policies name, a few stocks are kept."""

    async def act() -> list[tuple[int, ...]]:
        boxes = Boxes()
        doored = Doored(1, boxes.make)
        for port in (1001, 1002, 1003):
            await filled(doored, at(port))
        for _ in range(1000):
            if len(doored) == 3:
                break
            await asyncio.sleep(0.005)
        doored.take(at(1004))
        for _ in range(1000):
            if boxes.killed:
                break
            await asyncio.sleep(0.005)
        killed = list(boxes.killed)
        await doored.close()
        return killed

    assert asyncio.run(act()) == [(*PORTS, 1001)]
