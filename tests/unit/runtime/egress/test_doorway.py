"""The doors of one sandbox."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections.abc import Callable

from hotbed.runtime.egress.doorway import Doorway


def test_who_is_responsible_hears_of_what_waits() -> None:
    """Each door of its own."""

    async def act() -> list[str]:
        heard: list[str] = []
        doorway, doors = Doorway(), [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        for name, door in zip("ab", doors, strict=True):
            doorway.add(door, _taking(door, heard, name))
        with socket.create_connection(doors[1].getsockname()), socket.create_connection(doors[0].getsockname()):
            await _until(lambda: len(heard) == 2)
        doorway.close()
        doorway.close()
        return heard

    assert sorted(asyncio.run(act())) == ["a", "b"]


def test_before_it_is_opened_there_is_one_knock_and_nothing_is_taken() -> None:
    """However many dial; afterwards all of them are heard."""

    async def act() -> tuple[int, int, int]:
        heard: list[str] = []
        knocks: list[int] = []
        doorway, door = Doorway(lambda: knocks.append(1)), socket.create_server(("127.0.0.1", 0))
        doorway.add(door, _taking(door, heard, "a"))
        with socket.create_connection(door.getsockname()), socket.create_connection(door.getsockname()):
            await _until(lambda: bool(knocks))
            await asyncio.sleep(0.01)
            before = len(heard)
            doorway.open()
            doorway.open()
            await _until(lambda: len(heard) == 2)
        doorway.close()
        return len(knocks), before, len(heard)

    assert asyncio.run(act()) == (1, 0, 2)


def test_a_witness_shows_from_the_first_dial_on_for_good() -> None:
    """While it waits, when it was taken, and when it is long gone; not before."""

    async def act() -> list[bool]:
        heard: list[str] = []
        doorway, door = Doorway(), socket.create_server(("127.0.0.1", 0))
        doorway.add(door, _taking(door, heard, "a"))
        witness = doorway.witness()
        seen = [_shows(witness)]
        with socket.create_connection(door.getsockname()):
            seen.append(_shows(witness))
            await _until(lambda: bool(heard))
            seen.append(_shows(witness))
        seen.append(_shows(witness))
        os.close(witness)
        doorway.close()
        return seen

    assert asyncio.run(act()) == [False, True, True, True]


def _taking(door: socket.socket, heard: list[str], name: str) -> Callable[[], None]:
    def take() -> None:
        door.accept()[0].close()
        heard.append(name)

    return take


def _shows(witness: int) -> bool:
    looks = select.poll()
    looks.register(witness, select.POLLIN)
    return bool(looks.poll(0))


async def _until(holds: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not holds():
            await asyncio.sleep(0.002)

    await asyncio.wait_for(wait(), 10)
