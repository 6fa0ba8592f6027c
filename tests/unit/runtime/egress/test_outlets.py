"""The node's handle on the broker."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hotbed.egress.policy import parse
from hotbed.errors import SandboxFailed
from hotbed.runtime.egress.outlet import PORTS, ports_of
from hotbed.runtime.egress.outlets import Outlets
from tests.support.brokers import Boxed, Brokers
from tests.support.wards import Walls

ALLOW = parse({"allow": ["a.org:8443"]}, {})


class Losing(Walls):
    """Walls in which no door is made before so many brokers are lost."""

    def __init__(self, brokers: Brokers, lost: int) -> None:
        super().__init__()
        self._brokers, self._lost = brokers, lost

    def wire(self, box_id: int, ports: Sequence[int], channel: int) -> None:
        """The broker ends before it has them."""
        if self._lost == 0:
            super().wire(box_id, ports, channel)
            return
        self._lost -= 1
        socket.socket(fileno=channel).close()
        self._brokers.lose()


def test_a_sandbox_gets_doors_where_its_policy_needs_them() -> None:
    """The usual ones, and those it names."""

    async def act() -> list[int]:
        brokers, walls = Brokers(), Walls()
        outlets = Outlets(brokers.start)
        outlet = await outlets.open(7, walls, ALLOW)
        tally = await outlet.tally()
        assert tally["allowed"] == 0 and len(outlets) == 1
        outlet.close()
        outlet.close()
        assert len(outlets) == 0
        outlets.close()
        await brokers.gone()
        return walls.asked[0]

    assert asyncio.run(act()) == [*PORTS, 8443]


def test_a_new_policy_opens_what_is_missing() -> None:
    """And nothing twice."""

    async def act() -> list[list[int]]:
        brokers, walls = Brokers(), Walls()
        outlets = Outlets(brokers.start)
        outlet = await outlets.open(7, walls, ALLOW)
        await outlet.change(parse({"allow": ["b.org:8443,9000"]}, {}))
        outlets.close()
        await brokers.gone()
        return walls.asked[1:]

    assert asyncio.run(act()) == [[9000]]


def test_a_sandbox_that_ends_meanwhile_has_no_way_out() -> None:
    """And is not kept."""

    async def act() -> int:
        brokers, walls = Brokers(), Walls()
        outlets = Outlets(brokers.start)
        walls.broken = True
        with pytest.raises(SandboxFailed, match="could not be given a network"):
            await outlets.open(7, walls, ALLOW)
        outlets.close()
        await brokers.gone()
        return len(outlets)

    assert asyncio.run(act()) == 0


def test_a_lost_broker_is_replaced_and_the_living_get_new_doors() -> None:
    """Under the policy they have by then."""

    async def act() -> tuple[int, int]:
        brokers, walls = Brokers(), Walls()
        outlets = Outlets(brokers.start)
        outlet = await outlets.open(7, walls, ALLOW)
        before = walls.ports[80]
        brokers.lose()
        while outlets.restarts == 0 or len(walls.asked) < 2 or not outlet.ports:
            await asyncio.sleep(0.005)
        assert (await outlet.tally())["denied"] == 0
        outlets.close()
        await brokers.gone()
        return before, walls.ports[80]

    before, after = asyncio.run(act())

    assert before != after


def test_what_ends_before_the_next_broker_has_its_doors_is_not_kept_waiting() -> None:
    """What it tried before went with the last one, and there was nothing it could try since."""

    async def act() -> int:
        brokers, walls = Brokers(), Walls()
        outlets = Outlets(brokers.start)
        outlet = await outlets.open(7, walls, ALLOW)
        await said_to(walls.ports[3128], "a.org")
        async with outlet.turn:  # nobody gives it doors meanwhile
            brokers.lose()
            while outlets.restarts == 0:
                await asyncio.sleep(0.005)
            tally = await asyncio.wait_for(outlet.tally(), 10)
        while len(walls.asked) < 2 or not outlet.ports:
            await asyncio.sleep(0.005)
        outlets.close()
        await brokers.gone()
        return int(tally["allowed"])

    assert asyncio.run(act()) == 0


def test_a_broker_lost_while_a_sandbox_is_wired_is_not_the_sandboxes_loss() -> None:
    """It has opened nothing; the next one does. One that is lost each time is told."""

    async def act(lost: int) -> int:
        brokers = Brokers()
        walls = Losing(brokers, lost)
        outlets = Outlets(brokers.start)
        try:
            return len((await outlets.open(7, walls, ALLOW)).ports)
        finally:
            outlets.close()
            await brokers.gone()

    assert asyncio.run(act(2)) == len(PORTS) + 1
    with pytest.raises(SandboxFailed, match="broker is gone"):
        asyncio.run(act(100))


def test_what_was_tried_is_told_to_its_last() -> None:
    """Also when the sandbox has ended."""

    async def act() -> list[tuple[int, int, bool]]:
        heard: list[tuple[int, int, bool]] = []

        def on_rows(box_id: int, rows: Sequence[Mapping[str, Any]], over: bool) -> None:
            heard.append((box_id, len(rows), over))

        brokers, walls = Brokers(), Walls()
        outlets = Outlets(brokers.start)
        outlets.on_rows = on_rows
        outlet = await outlets.open(7, walls, ALLOW)
        reader, writer = await asyncio.open_connection("127.0.0.1", walls.ports[3128])
        writer.write(b"CONNECT b.org:443 HTTP/1.1\r\n\r\n")
        await reader.read(100)
        writer.close()
        outlet.close()
        while not heard or not heard[-1][2]:
            await asyncio.sleep(0.005)
        outlets.close()
        await brokers.gone()
        return heard

    assert asyncio.run(act()) == [(7, 1, False), (7, 0, True)]


async def tallies(*, told: bool, ended: bool) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Of a sandbox that was refused something before its broker was lost: the one then, the next one, and its rows."""
    rows: list[str] = []
    brokers, walls = Brokers(), Walls()
    outlets = Outlets(brokers.start)
    outlets.on_rows = lambda box_id, new, over: rows.extend(row["kind"] for row in new)
    outlet = await outlets.open(7, walls, ALLOW)
    await said_to(walls.ports[3128], "a.org")
    if told:
        brokers.tell()
        while not rows:
            await asyncio.sleep(0.005)
    brokers.lose()
    if ended:
        outlet.close()
    found = await outlet.tally(), await outlet.tally(), rows
    outlets.close()
    await brokers.gone()
    return found


@pytest.mark.parametrize("ended", [False, True])
def test_what_is_lost_with_a_broker_is_said(ended: bool) -> None:
    """The run is not thrown away; who relies on its audit can tell that there may have been more. The next is whole."""
    first, second, rows = asyncio.run(tallies(told=False, ended=ended))

    assert (first["complete"], first["denied"], first["suspected_leak"]) == (False, 0, None)
    assert (second["complete"], second["suspected_leak"]) == (True, False)
    assert rows == ["lost"]


@pytest.mark.parametrize("ended", [False, True])
def test_what_was_told_before_is_not_lost(ended: bool) -> None:
    """It is told every moment, not at the end alone."""
    first, second, rows = asyncio.run(tallies(told=True, ended=ended))

    assert (first["complete"], first["denied"], len(first["refused"])) == (False, 1, 1)
    assert (second["complete"], second["denied"]) == (True, 0)
    assert rows == ["proxy", "lost"]


def test_a_sandbox_that_dialled_nothing_loses_nothing_with_its_broker() -> None:
    """Nothing was taken from doors whose policy the broker never heard."""

    async def act() -> dict[str, Any]:
        brokers, walls = Brokers(), Walls()
        outlets, box = Outlets(brokers.start), Boxed(home=walls)
        await outlets.park(box, ports_of(ALLOW))
        await outlets.attach(box, ALLOW)
        assert box.outlet is not None
        brokers.lose()
        while outlets.restarts == 0:
            await asyncio.sleep(0.005)
        found = await box.outlet.tally()
        outlets.close()
        await brokers.gone()
        return found

    assert asyncio.run(act())["complete"]


async def said_to(port: int, name: str) -> bytes:
    """What a sandbox hears that asks its proxy for a name."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.read(100), 5)
    writer.close()
    return answer


def test_two_who_give_a_sandbox_a_network_at_once_give_it_one() -> None:
    """The policy that it is said to have is the one it is held to."""

    async def act() -> bytes:
        brokers, walls = Brokers(), Walls()
        outlets = Outlets(brokers.start)
        wide, narrow = parse({"allow": ["a.org"]}, {}), parse({"allow": ["b.org"]}, {})
        first, second = await asyncio.gather(outlets.open(7, walls, wide), outlets.open(7, walls, narrow))
        assert first is second and second.policy is narrow and len(walls.asked) == 1
        answer = await said_to(walls.ports[3128], "a.org")
        outlets.close()
        await brokers.gone()
        return answer

    assert asyncio.run(act()).startswith(b"HTTP/1.1 403")


def test_a_policy_that_fails_is_not_half_there() -> None:
    """Its doors could not be made: what it would have let go is refused as before."""

    async def act() -> bytes:
        brokers, walls = Brokers(), Walls()
        outlets = Outlets(brokers.start)
        outlet = await outlets.open(7, walls, ALLOW)
        walls.broken = True
        with pytest.raises(SandboxFailed):
            await outlet.change(parse({"allow": ["b.org:443,9000"]}, {}))
        assert outlet.policy is ALLOW
        answer = await said_to(walls.ports[3128], "b.org")
        outlets.close()
        await brokers.gone()
        return answer

    assert asyncio.run(act()).startswith(b"HTTP/1.1 403")


def test_a_policy_can_change_while_the_broker_is_lost() -> None:
    """The next one is told of it, once."""

    async def act() -> list[list[int]]:
        brokers, walls = Brokers(), Walls()
        outlets = Outlets(brokers.start)
        outlet = await outlets.open(7, walls, ALLOW)
        brokers.lose()
        while not outlets.restarts:
            await asyncio.sleep(0)
        await outlet.change(parse({"allow": ["b.org:9000"]}, {}))
        assert outlets._reviving is not None
        await outlets._reviving
        outlets.close()
        await brokers.gone()
        return walls.asked[1:]

    assert asyncio.run(act())[-1][-1] == 9000


def test_doors_made_ahead_hear_nothing_before_their_policy() -> None:
    """What is dialled meanwhile is answered by it."""

    async def act() -> tuple[bytes, list[list[int]], tuple[int, int]]:
        brokers, walls = Brokers(), Walls()
        box = Boxed(home=walls)
        outlets = Outlets(brokers.start)
        await outlets.park(box, ports_of(ALLOW))
        parked = len(outlets)
        reader, writer = await asyncio.open_connection("127.0.0.1", walls.ports[3128])
        writer.write(b"CONNECT b.org:443 HTTP/1.1\r\n\r\n")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.05)
        await outlets.attach(box, ALLOW)
        said = await asyncio.wait_for(reader.readline(), 10)
        writer.close()
        outlets.close()
        await brokers.gone()
        return said, walls.asked, (parked, len(outlets))

    said, asked, counted = asyncio.run(act())

    assert said.startswith(b"HTTP/1.1 403") and asked == [[*PORTS, 8443]] and counted == (0, 1)


def test_doors_made_ahead_for_other_ports_are_completed() -> None:
    """Before the sandbox is handed out."""

    async def act() -> list[list[int]]:
        brokers, walls = Brokers(), Walls()
        box = Boxed(home=walls)
        outlets = Outlets(brokers.start)
        await outlets.park(box, PORTS)
        await outlets.attach(box, ALLOW)
        outlets.close()
        await brokers.gone()
        return walls.asked

    assert asyncio.run(act()) == [list(PORTS), [8443]]


def test_parked_doors_outlive_their_broker() -> None:
    """And wait for a policy at the next one as well."""

    async def act() -> bytes:
        brokers, walls = Brokers(), Walls()
        box = Boxed(home=walls)
        outlets = Outlets(brokers.start)
        await outlets.park(box, ports_of(ALLOW))
        brokers.lose()
        while outlets.restarts == 0 or len(walls.asked) < 2:
            await asyncio.sleep(0.005)
        reader, writer = await asyncio.open_connection("127.0.0.1", walls.ports[3128])
        writer.write(b"CONNECT b.org:443 HTTP/1.1\r\n\r\n")
        await outlets.attach(box, ALLOW)
        said = await asyncio.wait_for(reader.readline(), 10)
        writer.close()
        outlets.close()
        await brokers.gone()
        return said

    assert asyncio.run(act()).startswith(b"HTTP/1.1 403")
