"""Holding on."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from hotbed.errors import Draining, ProtocolError
from hotbed.sdk.addresses import Address
from hotbed.sdk.leases import Lease, take_lease
from tests.unit.sdk.conftest import ScriptedNode, answer, grant, say

Script = Callable[..., ScriptedNode]


def take(node: ScriptedNode) -> Lease:
    """A lease on a scripted node."""
    return take_lease(Address(unix_path=node.path), b"Host: x\r\n", 5.0)


def test_grant_is_read_and_the_connection_kept(script: Script) -> None:
    """The first line is the grant."""
    lease = take(script(grant))

    assert (lease.id, lease.ttl_s, lease.is_held()) == ("lease1", 15.0, True)
    lease.release()


def test_refusal_is_the_nodes_own_error(script: Script) -> None:
    """A node that is shutting down says so."""
    refusal = answer(b'{"code": "draining", "message": "bye"}', "503 No", "Retry-After: 1\r\n")

    with pytest.raises(Draining, match="bye"):
        take(script(say(refusal)))


@pytest.mark.parametrize("said", [answer(b"welcome"), answer(b'{"lease_id": 1}\n')])
def test_what_grants_no_lease_is_no_node(said: bytes, script: Script) -> None:
    """Some other server answers there."""
    with pytest.raises(ProtocolError):
        take(script(say(said)))


def test_heartbeats_are_drained() -> None:
    """However many have come since the last call."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        lease = Lease("x", 1.0, ours)
        theirs.send(b"\n" * 10_000)

        assert lease.is_held()
        with pytest.raises(BlockingIOError):
            ours.recv(1)


def test_lease_ends_when_the_node_hangs_up() -> None:
    """Also behind unread heartbeats."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.send(b"\n" * 4096)
    theirs.close()
    lease = Lease("x", 1.0, ours)

    assert not lease.is_held()
    lease.release()
