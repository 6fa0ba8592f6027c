"""The blocking driver: threads, forks, and nodes that die at the worst moment."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hotbed.errors import DeadlineExceeded, NodeUnavailable
from hotbed.sdk import calls
from hotbed.sdk.addresses import Address
from hotbed.sdk.calls import Call
from hotbed.sdk.client import Client
from hotbed.sdk.pool import is_quiet
from hotbed.sdk.transport import Link, close_all
from tests.unit.sdk.conftest import ScriptedNode, answer, grant, read_request, say

Script = Callable[..., ScriptedNode]
OK = answer(b"{}")
TRACE = f"00-{'a' * 32}-{'b' * 16}-01"


def link(node: ScriptedNode, **options: Any) -> Link:
    """A link to a scripted node."""
    return Link(Address(unix_path=node.path), **options)


def get(**changes: Any) -> Call[Any]:
    """A small call."""
    return Call(**{"method": "GET", "target": "/x", "read": bytes, **changes})


def test_connection_is_kept_and_used_again(script: Script) -> None:
    """One accept serves both calls."""
    made = link(script(say(OK, OK)))

    assert [made.send(get()), made.send(get())] == [b"{}", b"{}"]
    made.close()


def test_kept_connection_that_died_is_replaced_unseen(script: Script) -> None:
    """The node restarts its listener, or an idle timeout strikes."""

    def once(connection: socket.socket) -> None:
        say(OK)(connection)
        connection.close()

    made = link(script(once, say(OK)))
    made.send(get(method="POST"))
    wait_until(lambda: not is_quiet(made.pool._idle[0]))

    assert made.send(get(method="POST")) == b"{}"
    made.close()


def test_node_that_dies_while_it_works_is_reported_once(script: Script) -> None:
    """A second connection is never tried: the first may have run."""

    def die(connection: socket.socket) -> None:
        read_request(connection)
        connection.close()

    node = script(die, say(OK))

    with pytest.raises(NodeUnavailable, match="may have run"):
        link(node).send(get(method="POST"))


def test_node_that_never_answers_is_given_its_time(script: Script) -> None:
    """And the connection is closed, so that the node hears of it."""
    hung_up = threading.Event()

    def silent(connection: socket.socket) -> None:
        read_request(connection)
        if connection.recv(1) == b"":
            hung_up.set()

    with pytest.raises(DeadlineExceeded, match=r"within 0\.1 s"):
        link(script(silent)).send(get(timeout_s=0.1))
    assert hung_up.wait(5)


def test_many_threads_share_a_client(client: Client) -> None:
    """A trainer uses 64 and more; nobody gets another's answer."""

    def check(number: int) -> bool:
        return client.link.send(calls.health()).status == "ok" and number >= 0

    with ThreadPoolExecutor(64) as pool:
        assert all(pool.map(check, range(640)))


def test_closed_client_says_so(client: Client) -> None:
    """Instead of connecting again behind the caller's back."""
    client.close()
    client.close()

    with pytest.raises(NodeUnavailable, match="closed"):
        client.health()


def test_forked_child_takes_a_lease_of_its_own(client: Client) -> None:
    """What the child makes ends with the child; what the parent made does not."""
    before = client.link.hold().id
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, client.link.hold().id.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reader, 100).decode()
    os.close(reader)
    os.close(writer)

    assert theirs
    assert theirs != before
    assert client.link.has_lease()
    assert client.link.hold().id == before


def test_close_ends_the_lease_even_while_a_child_lives(client: Client) -> None:
    """A child that has never heard of us holds a copy of the connection."""
    made = Link(client.link.address)
    made.hold()
    held = made._lease
    assert held is not None
    copy = held.connection.dup()
    made.close()

    copy.settimeout(5)
    while data := copy.recv(100):
        assert data.strip() == b""
    copy.close()


def test_lease_that_the_node_dropped_is_taken_anew(script: Script) -> None:
    """The node restarted: what was made is gone, what comes can go on."""

    def brief(connection: socket.socket) -> None:
        grant(connection)
        connection.close()

    made = link(script(brief, grant))
    made.hold()
    wait_until(lambda: not made.has_lease())

    assert made.hold().is_held()
    made.close()


def test_dead_local_node_is_revived(script: Script) -> None:
    """The next call finds the new one."""
    old, new = script(), script(say(OK))
    old.close()
    made = link(old, revive=lambda: Address(unix_path=new.path))

    assert made.send(get()) == b"{}"
    made.close()


def test_reviving_leaves_alone_what_another_thread_holds_since(script: Script) -> None:
    """All threads miss a dead node; the first of them may have made something on the next already."""
    node = script(grant, grant)
    made = link(node, revive=lambda: Address(unix_path=node.path))
    first = made.hold()

    assert made.revive(None)
    assert made.hold() is first
    assert made.revive(first)
    assert made.hold() is not first
    made.close()


def test_key_and_lease_travel_as_headers(script: Script) -> None:
    """The key and the trace on every call, the lease where something is made."""
    seen: list[bytes] = []

    def note(connection: socket.socket) -> None:
        seen.append(read_request(connection))
        connection.sendall(OK)

    made = link(script(grant, note), api_key="secret", traceparent=TRACE)
    made.send(get(leased=True))
    made.close()

    assert b"\r\nAuthorization: Bearer secret\r\n" in seen[0]
    assert b"\r\nx-hotbed-lease: lease1\r\n" in seen[0]
    assert f"\r\ntraceparent: {TRACE}\r\n".encode() in seen[0]


def test_interpreter_that_ends_closes_everything(script: Script) -> None:
    """Leases end at once, not when the kernel gets to it."""
    made = link(script(grant))
    made.hold()

    close_all()

    assert made.closed


def wait_until(condition: Callable[[], bool]) -> None:
    """A condition that becomes true soon."""
    deadline = time.monotonic() + 5
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert condition()
