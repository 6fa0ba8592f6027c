"""One sandbox as the broker sees it."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from ipaddress import ip_address

from hotbed.runtime.egress import doors, sockets
from hotbed.runtime.egress import ward as wards
from tests.support.wards import ward


def test_a_name_it_was_told_is_what_is_dialled() -> None:
    """By the address that it was told."""
    found = asyncio.run(_made())
    pair = found.names.addresses("a.org")

    assert pair is not None and found.target_of(pair[0], 443).name == "a.org"
    assert found.target_of(ip_address("93.184.215.14"), 443).address == ip_address("93.184.215.14")
    assert found.target_of(ip_address("198.18.9.9"), 443).address == ip_address("198.18.9.9")


async def _made() -> wards.Ward:
    return ward({"allow": ["a.org"]})


def test_more_connections_than_it_may_have_are_refused() -> None:
    """Each that says nothing keeps a place of its own sandbox's."""

    async def act() -> tuple[int, str]:
        found = ward({"allow": ["a.org"]})
        door = socket.create_server(("127.0.0.1", 0), backlog=512)
        port = door.getsockname()[1]
        found.open_door(door, partial(doors.proxied, found))
        callers = [await sockets.dial(ip_address("127.0.0.1"), port) for _ in range(wards.CONNECTIONS_LIMIT)]
        try:
            callers.append(await sockets.dial(ip_address("127.0.0.1"), port))
            await asyncio.wait_for(sockets.receive(callers[-1], 10), 5)
            end = "closed"
        except ConnectionResetError:
            end = "reset"
        denied = found.tally.take()["denied"]
        await found.close()
        for caller in callers:
            caller.close()
        return denied, end

    assert asyncio.run(act()) == (1, "reset")


def test_closing_ends_what_is_open() -> None:
    """Doors and connections."""

    async def act() -> str:
        found = ward("open")
        door = socket.create_server(("127.0.0.1", 0))
        port = door.getsockname()[1]
        found.open_door(door, partial(doors.proxied, found))
        caller = await sockets.dial(ip_address("127.0.0.1"), port)
        await asyncio.sleep(0.01)
        await found.close()
        await found.close()
        try:
            data = await asyncio.wait_for(sockets.receive(caller, 10), 5)
        except ConnectionResetError:
            data = b""
        caller.close()
        try:
            await sockets.dial(ip_address("127.0.0.1"), port)
        except OSError:
            return f"refused {data!r}"
        return "still open"

    assert asyncio.run(act()) == "refused b''"
