"""Kept connections."""

from __future__ import annotations

import os
import socket

from hotbed.sdk.pool import ConnectionPool, is_quiet


def test_last_used_is_first_taken() -> None:
    """Warm sockets stay warm, cold ones can be closed by the node."""
    pool = ConnectionPool()
    (a, other_a), (b, other_b) = socket.socketpair(), socket.socketpair()
    with a, b, other_a, other_b:
        pool.give(a)
        pool.give(b)

        assert pool.take() is b
        assert pool.take() is a
        assert pool.take() is None


def test_connection_that_the_node_closed_is_not_given_out() -> None:
    """It would fail on the first write, or worse, after it."""
    pool = ConnectionPool()
    ours, theirs = socket.socketpair()
    pool.give(ours)
    theirs.close()

    assert pool.take() is None
    assert ours.fileno() == -1


def test_connection_with_unread_bytes_is_not_quiet() -> None:
    """They would be read as the next answer."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert is_quiet(ours)
        theirs.send(b"x")

        assert not is_quiet(ours)


def test_forked_child_starts_empty_and_leaves_the_parents_connections_alone() -> None:
    """Two processes on one connection would read each other's answers."""
    pool = ConnectionPool()
    ours, theirs = socket.socketpair()
    with theirs:
        pool.give(ours)
        child = os.fork()
        if child == 0:
            os._exit(0 if pool.take() is None and ours.fileno() == -1 else 1)

        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert pool.take() is ours
        ours.close()
