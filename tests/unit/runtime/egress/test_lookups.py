"""Lookups of a sandbox."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from hotbed.runtime.egress import dns, lookups, sockets
from hotbed.runtime.egress.ward import Ward
from tests.support.wards import Zone, knock, ward
from tests.unit.runtime.egress.test_dns import question


def look_up(found: Ward, name: str, kind: int = dns.A) -> tuple[int, bytes]:
    """The code and what follows the question."""
    query = dns.parse(question(name, kind))
    assert query is not None
    reply = asyncio.run(lookups.answer(found, query))
    return reply[3] & 15, reply[12 + len(query.question) :]


def test_an_allowed_name_gets_an_address_of_the_sandbox() -> None:
    """Never the one it has outside."""
    found = ward({"allow": ["a.org"]}, a_org="93.184.215.14")

    code, records = look_up(found, "a.org")

    assert code == dns.NO_ERROR and records.endswith(socket.inet_aton("198.18.0.1"))
    assert look_up(found, "a.org", dns.AAAA)[1][12:14] == b"\xfd\x68"


def test_a_name_that_is_not_allowed_is_never_asked_for_outside() -> None:
    """What is packed into it stays here."""
    found = ward({"allow": ["a.org"]})

    code, _ = look_up(found, "c2VjcmV0.evil.org")

    assert code == dns.NO_SUCH_NAME
    assert isinstance(found.resolver, Zone) and found.resolver.asked == []
    assert found.tally.take()["denied"] == 1


def test_an_allowed_name_that_does_not_exist_does_not_exist() -> None:
    """Programs are told the same as anywhere."""
    assert look_up(ward("open"), "nope.org")[0] == dns.NO_SUCH_NAME


@pytest.mark.parametrize("kind", [15, 16, 33, 65])
def test_other_kinds_of_records_have_nothing_to_say(kind: int) -> None:
    """Mail, text, services, and keys that would hide a server's name."""
    found = ward("open", a_org="93.184.215.14")

    assert look_up(found, "a.org", kind) == (dns.NO_ERROR, b"")
    assert isinstance(found.resolver, Zone) and found.resolver.asked == []


def test_localhost_is_the_sandbox_itself() -> None:
    """Whatever the policy."""
    assert look_up(ward({"allow": ["a.org"]}), "localhost")[1].endswith(socket.inet_aton("127.0.0.1"))


def test_the_same_over_a_stream() -> None:
    """Each message behind its length."""

    async def act() -> bytes:
        found = ward("open", a_org="93.184.215.14")
        with knock(found, lookups.serve_stream) as sock:
            message = question("a.org")
            await sockets.send(sock, struct.pack("!H", len(message)) + message)
            reply = await asyncio.wait_for(sockets.receive(sock, 1000), 5)
        await found.close()
        return reply

    reply = asyncio.run(act())

    assert len(reply) == 2 + struct.unpack_from("!H", reply)[0] and reply.endswith(socket.inet_aton("198.18.0.1"))
