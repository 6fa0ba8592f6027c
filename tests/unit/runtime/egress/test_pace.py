"""How many connections the broker begins."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address

from hotbed.runtime.egress import pace, sockets
from hotbed.runtime.egress.pace import Pace
from tests.support.wards import ward


def test_a_turn_of_the_loop_begins_a_few() -> None:
    """So that what else there is to hear waits for those only."""

    async def act() -> list[int]:
        found = Pace(1000, turn_most=3)
        turns = []
        for _ in range(2):
            turns.append(sum(found.admits(0) for _ in range(10)))
            await asyncio.sleep(0)
        return turns

    assert asyncio.run(act()) == [3, 3]


def test_with_no_room_those_that_have_many_wait() -> None:
    """And those that have few do not."""

    async def act() -> tuple[bool, bool]:
        found = Pace(2)
        found.held = 2
        return found.admits(pace.SMALL), found.admits(0)

    assert asyncio.run(act()) == (False, True)


def test_what_waited_is_begun_when_there_is_room() -> None:
    """It is behind its door until then."""

    async def greet(inner: socket.socket) -> None:
        await sockets.send(inner, b"hello")
        await sockets.receive(inner, 10)  # until its end

    async def greeted(caller: socket.socket) -> bytes:
        return await asyncio.wait_for(sockets.receive(caller, 10), 10)

    async def act() -> list[bytes]:
        found = ward({"allow": ["a.org"]})
        found._pace._most = pace.SMALL
        door = socket.create_server(("127.0.0.1", 0))
        port = door.getsockname()[1]
        found.open_door(door, greet)
        callers = [await sockets.dial(ip_address("127.0.0.1"), port) for _ in range(pace.SMALL + 1)]
        heard = [await greeted(caller) for caller in callers[:-1]]
        callers[0].close()
        heard.append(await greeted(callers[-1]))
        await found.close()
        for caller in callers:
            caller.close()
        return heard

    assert asyncio.run(act()) == [b"hello"] * (pace.SMALL + 1)
