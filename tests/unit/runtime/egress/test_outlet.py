"""One sandbox's way out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hotbed.egress.policy import parse
from hotbed.guest.frames import Header
from hotbed.runtime.egress.outlet import PORTS, ports_of
from hotbed.runtime.egress.outlets import Outlets
from tests.support.brokers import Boxed, Brokers
from tests.support.wards import Walls

ALLOW = parse({"allow": ["a.org:8443"]}, {})


def test_doors_are_where_programs_usually_dial_and_where_the_policy_says() -> None:
    """Each once."""
    assert ports_of(parse("open", {})) == PORTS
    assert ports_of(parse({"allow": ["a.org:443,8443", "b.org:8443"]}, {})) == (*PORTS, 8443)


def test_nobody_is_asked_about_a_sandbox_that_dialled_nothing() -> None:
    """The kernel knows; once something was dialled, the broker is asked, and has heard its policy by then."""

    async def act() -> tuple[list[str], int, list[str], int]:
        brokers, walls = Brokers(), Walls()
        box = Boxed(home=walls)
        outlets = Outlets(brokers.start)
        await outlets.park(box, ports_of(ALLOW))
        await outlets.attach(box, ALLOW)
        outlet, link = box.outlet, outlets._link
        assert outlet is not None and link is not None
        posted: list[str] = []
        post = link.post

        def noted(header: Header, body: bytes = b"", fds: Sequence[int] = ()) -> asyncio.Future[None] | None:
            posted.append(header["op"])
            return post(header, body, fds)

        link.post = noted  # type: ignore[method-assign]  # what goes to the broker is what is asked here
        quiet, before = await outlet.tally(), list(posted)
        reader, writer = await asyncio.open_connection("127.0.0.1", walls.ports[3128])
        writer.write(b"CONNECT b.org:443 HTTP/1.1\r\n\r\n")
        await asyncio.wait_for(reader.readline(), 10)
        loud = await outlet.tally()
        writer.close()
        outlets.close()
        await brokers.gone()
        return before, quiet["denied"], posted, loud["denied"]

    assert asyncio.run(act()) == ([], 0, ["policy", "report"], 1)


def test_a_broker_that_was_just_lost_is_no_witness() -> None:
    """Also before anybody heard of its end: what was tried with it is not told as nothing."""

    async def act() -> tuple[bool, bool]:
        brokers, walls = Brokers(), Walls()
        outlets = Outlets(brokers.start)
        outlet = await outlets.open(7, walls, ALLOW)
        before = outlet.is_untouched()
        brokers.lose()
        after = outlet.is_untouched()
        outlets.close()
        await brokers.gone()
        return before, after

    assert asyncio.run(act()) == (True, False)
