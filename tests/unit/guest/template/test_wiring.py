"""Doors in a namespace; that they lead out is in tests/e2e/test_egress.py."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
from types import SimpleNamespace

from hotbed.guest.template import wiring


def test_the_route_takes_every_address() -> None:
    """RTM_NEWROUTE of type local, without a destination, by the loopback."""
    message = wiring.route_message(socket.AF_INET, socket.inet_aton("127.0.0.1"))

    length, kind = struct.unpack_from("=IH", message)
    assert (length, kind) == (len(message), 24)
    assert message[17] == 0 and message[16 + 4] == 255 and message[16 + 7] == 2  # prefix, table, type


def test_a_sandbox_that_has_ended_closes_the_channel() -> None:
    """The broker hears of it by that."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        wiring.serve(None, -1, {"ports": [80]}, [theirs.detach()])

        assert ours.recv(10) == b""


def test_a_namespace_that_cannot_be_entered_is_told() -> None:
    """Then there are no doors, and nobody waits for them."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    null = os.open("/dev/null", os.O_RDONLY)
    network = SimpleNamespace(fd=null, wired=False)
    with ours:
        wiring.serve(network, null, {"ports": [80]}, [theirs.detach()])

        assert "error" in json.loads(ours.recv(1000))
    os.close(null)


def test_a_door_is_made_where_connections_of_the_last_one_linger() -> None:
    """They do for a minute: a sandbox that had dialled had no way out while the next broker lived."""
    first = wiring._door("tcp", 0)
    port = first.getsockname()[1]
    first.setblocking(True)
    with socket.create_connection(("127.0.0.1", port)):
        first.accept()[0].close()  # who ends first waits for what may still be on its way
        first.close()

        wiring._door("tcp", port).close()


def test_no_door_is_made_where_somebody_listens() -> None:
    """What is dialled there is that program's, and it is told that there is no door."""
    with socket.create_server(("127.0.0.1", 0)) as theirs:
        port = theirs.getsockname()[1]
        opened, failed = wiring._open_doors([port])

    assert (opened, failed) == ([], [["tcp", port, errno.EADDRINUSE]])
