"""How many connections the broker begins."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from typing import Any

import pytest

from hotbed.egress.policy import parse
from hotbed.runtime.egress import pace, sockets
from hotbed.runtime.egress.pace import Pace
from hotbed.runtime.egress.relay import Pipes
from hotbed.runtime.egress.ward import Ward
from tests.support.wards import Zone, ward


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


async def turned(times: int = 50) -> None:
    """So many turns of the loop are over."""
    for _ in range(times):
        await asyncio.sleep(0)


class Visited(Ward):
    """Counts how often its doors call."""

    visits = 0

    def _accept(self, *args: Any) -> None:
        self.visits += 1
        super()._accept(*args)


@contextmanager
def dialled(found: Ward, door: socket.socket, callers: int) -> Iterator[list[socket.socket]]:
    """A door of the ward's with so many who said something at it."""
    found.open_door(door, partial(sockets.receive, size=100))  # type: ignore[arg-type]  # what it returns is dropped
    made = [socket.create_connection(door.getsockname()) for _ in range(callers)]
    yield made
    for caller in made:
        caller.close()


def test_a_door_at_which_many_wait_for_room_does_not_call_in_every_turn() -> None:
    """It would keep a whole processor busy. It calls again when one of its own has ended."""

    async def act() -> tuple[int, int, int]:
        found = Visited(parse("open", {}), (), Zone(), Pipes(), Pace(0))
        with dialled(found, socket.create_server(("127.0.0.1", 0)), pace.SMALL + 3) as callers:
            await turned()
            visits, begun = found.visits, len(found._tasks)
            callers[0].sendall(b"goodbye")
            await turned()
            await found.close()
        return visits, begun, found.visits

    assert asyncio.run(act()) == (1, pace.SMALL, 2)


class Exhausted(socket.socket):
    """A door for whose callers no descriptor is free, at first."""

    code = errno.EMFILE

    def accept(self) -> tuple[socket.socket, Any]:
        if self.code:
            raise OSError(self.code, os.strerror(self.code))
        return super().accept()


@pytest.mark.parametrize("code", pace.NONE_FREE)
def test_a_door_for_which_no_descriptor_is_free_does_not_call_in_every_turn(code: int) -> None:
    """Whoever has them, it is heard again when something has ended, or a while later; its lookups always are."""

    async def act() -> tuple[int, int, int, int]:
        found = Visited(parse("open", {}), (), Zone(), Pipes(), Pace())
        door = Exhausted()
        door.code = code
        door.bind(("127.0.0.1", 0))
        door.listen()
        heard: list[int] = []
        lookups = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        lookups.bind(("127.0.0.1", 0))
        found.open_datagrams(lookups, lambda sock: heard.append(len(sock.recv(10))))
        with dialled(found, door, 2):
            await turned()
            visits = found.visits
            lookups.sendto(b"?", lookups.getsockname())
            found._pace.wake()
            await turned()
            again = found.visits
            door.code = 0
            found._pace.begun()
            found._pace.ended()
            await turned()
            begun = len(found._tasks)
            await found.close()
        return visits, again, sum(heard), begun

    assert asyncio.run(act()) == (1, 2, 1, 2)


def test_an_end_lets_the_one_go_on_that_has_waited_longest() -> None:
    """And no more than one: there is room for one."""
    woken: list[str] = []

    class Rests:
        def __init__(self, name: str) -> None:
            self.name = name

        def wake(self) -> None:
            woken.append(self.name)

    found = Pace(1)
    for name in "abc":
        found.rest(Rests(name))
    found.begun()
    found.begun()

    found.ended()
    assert woken == []
    found.ended()
    assert woken == ["a"]
    found.wake()
    found.wake()
    assert woken == ["a", "b", "c"]
