"""What the broker is told about a sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from hotbed.egress.policy import Policy, parse
from hotbed.errors import InvalidRequest
from hotbed.runtime.egress.outlet import ports_of
from hotbed.runtime.egress.outlets import Outlets
from tests.support.brokers import Boxed, Brokers
from tests.support.wards import Walls

ALLOW = parse({"allow": ["a.org:8443"]}, {})


def test_a_secret_that_went_meanwhile_leaves_no_way_out() -> None:
    """A sandbox that dials then gets a refusal, not a policy without it."""

    async def act() -> tuple[bytes, str]:
        brokers, walls = Brokers(), Walls()
        box = Boxed(home=walls)
        outlets = Outlets(brokers.start)
        await outlets.park(box, ports_of(ALLOW))
        await outlets.attach(box, ALLOW)

        def gone(policy: Policy) -> Sequence[Mapping[str, Any]]:
            if policy.mode != "none":
                raise InvalidRequest("no such secret")
            return ()

        outlets.orders.secrets = gone
        reader, writer = await asyncio.open_connection("127.0.0.1", walls.ports[3128])
        writer.write(b"CONNECT a.org:8443 HTTP/1.1\r\n\r\n")
        said = await asyncio.wait_for(reader.readline(), 10)
        writer.close()
        assert box.outlet is not None
        mode = box.outlet.policy.mode
        outlets.close()
        await brokers.gone()
        return said, mode

    said, mode = asyncio.run(act())

    assert said.startswith(b"HTTP/1.1 403") and mode == "none"


def test_doors_that_wait_for_a_policy_are_held_to_none_before_it_comes() -> None:
    """Whoever looks after all that live, when a broker was lost, may come upon one that another broker has already."""

    async def act() -> list[str]:
        brokers, walls = Brokers(), Walls()
        box = Boxed(home=walls)
        outlets = Outlets(brokers.start)
        await outlets.park(box, ports_of(ALLOW))
        assert box.outlet is not None
        await outlets._hold_to_policy(box.outlet)
        await outlets.attach(box, ALLOW)
        reader, writer = await asyncio.open_connection("127.0.0.1", walls.ports[3128])
        writer.write(b"CONNECT b.org:443 HTTP/1.1\r\n\r\n")
        await asyncio.wait_for(reader.readline(), 10)
        tally = await box.outlet.tally()
        writer.close()
        outlets.close()
        await brokers.gone()
        return [refused["reason"] for refused in tally["refused"]]

    assert asyncio.run(act()) == ["not in the allow list"]
