"""One connection: checked, counted, ended."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address

import pytest

from hotbed.egress.decisions import Target, settle
from hotbed.egress.policy import parse
from hotbed.runtime.egress.flow import Flow
from hotbed.runtime.egress.targets import Refused
from tests.support.wards import Echo, local, ward


def attempt(policy: object, target: Target, said: str = "", **names: str) -> str:
    """Dial, and say why not."""

    async def act() -> str:
        found = ward(policy, **names)
        ours, theirs = socket.socketpair()
        with ours, theirs, Flow(found, theirs, "test") as flow:
            way = settle(found.policy, target, "tls" if said else "opaque", said)
            try:
                (await flow.dial(target, way)).close()
            except Refused as error:
                return str(error)
            except OSError:
                return "dialled"
        return "dialled"

    return asyncio.run(act())


@pytest.mark.parametrize(
    "where", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::a00:1"]
)
def test_an_allowed_name_that_leads_inside_is_refused(where: str) -> None:
    """However its owner changes where it leads."""
    assert attempt({"allow": ["a.org"]}, Target(port=22, name="a.org"), a_org=where).endswith("address")


def test_one_good_address_among_bad_ones_is_dialled() -> None:
    """And only that one."""

    async def act() -> list[str]:
        found = ward({"allow": [{"host": "a.org", "addresses": ["127.0.0.2/32"]}]}, a_org="10.0.0.1 127.0.0.2")
        ours, theirs = socket.socketpair()
        with ours, theirs, Flow(found, theirs, "test") as flow:
            target = Target(port=22, name="a.org")
            return [
                str(address) for address, _ in await flow.addresses(target, settle(found.policy, target, "opaque", ""))
            ]

    assert asyncio.run(act()) == ["127.0.0.2"]


def test_a_name_said_to_an_address_it_does_not_lead_to_is_refused() -> None:
    """The good name does not make the server good."""
    target = Target(port=443, address=ip_address("93.184.215.99"))

    assert "does not lead to" in attempt({"allow": ["a.org"]}, target, "a.org", a_org="93.184.215.14")


def test_a_budget_ends_it() -> None:
    """Both ways together."""

    async def act() -> tuple[str, list[dict[str, object]]]:
        async with Echo() as echo:
            found = ward({**local(echo.port), "bytes": 10}, a_org="127.0.0.1")
            ours, theirs = socket.socketpair()
            target = Target(port=echo.port, name="a.org")
            with ours, theirs, pytest.raises(Refused) as caught, Flow(found, theirs, "test") as flow:
                (await flow.dial(target, settle(found.policy, target, "opaque", ""))).close()
                flow.count_up(6)
                flow.count_down(6)
            return str(caught.value), found.tally.rows()

    said, rows = asyncio.run(act())

    assert said == "the budget of 10 bytes is spent"
    assert [(row["verdict"], row["up"], row["down"]) for row in rows] == [("cut", 6, 6)]


def test_a_policy_that_comes_while_a_name_is_looked_up_counts() -> None:
    """What the old one let go, and the new one does not, is never dialled."""

    async def act() -> tuple[bool, list[dict[str, object]]]:
        async with Echo() as echo:
            found = ward(local(echo.port), a_org="127.0.0.1")
            lookup = found.resolver.addresses

            async def slow(name: str) -> object:
                addresses = await lookup(name)
                found.change(parse({"allow": ["other.test"]}))
                return addresses

            found.resolver.addresses = slow  # type: ignore[method-assign, assignment]  # a name server that takes its time
            ours, theirs = socket.socketpair()
            target = Target(port=echo.port, name="a.org")

            async def go() -> None:
                with Flow(found, theirs, "test") as flow:
                    (await flow.dial(target, settle(found.policy, target, "opaque", ""))).close()

            with ours, theirs:
                going = asyncio.ensure_future(go())
                await asyncio.wait((going,), timeout=10)
                return going.cancelled(), found.tally.rows()

    cancelled, rows = asyncio.run(act())

    assert cancelled
    assert [row["verdict"] for row in rows] == ["cut"] and "the policy has changed" in str(rows[0]["reason"])


def test_a_new_policy_ends_what_it_would_not_have_let_go() -> None:
    """And leaves what it would."""

    async def act() -> list[bool]:
        async with Echo() as echo:
            found = ward(local(echo.port), a_org="127.0.0.1")
            target = Target(port=echo.port, name="a.org")
            ours, theirs = socket.socketpair()
            with ours, theirs, Flow(found, theirs, "test") as flow:
                (await flow.dial(target, settle(found.policy, target, "opaque", ""))).close()
                flow._task = None
                found.change(parse({**local(echo.port), "deny": ["b.org"]}, {}))
                kept = not flow.cut
                found.change(parse({"allow": ["b.org"]}, {}))
                return [kept, bool(flow.cut)]

    assert asyncio.run(act()) == [True, True]
