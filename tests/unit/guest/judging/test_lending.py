"""The candidate's end of the calls."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hotbed.guest.judging import calls, lending, loading, plain


@contextmanager
def peer_of(code: str, names: tuple[str, ...] = ("*",)) -> Iterator[tuple[lending.CandidatePeer, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = lending.CandidatePeer(calls.Channel(theirs), loading.Program(code=code, names=names))
        peer.load()
        yield peer, ours


def reply(sock: socket.socket) -> tuple[list[Any], list[bytes]]:
    return calls.Peer(calls.Channel(sock), 1, 1).read()


@pytest.mark.parametrize(
    ("names", "found"),
    [(("*",), {"f": "f", "C": "c", "x": "v"}), (("f", "C.m", "no"), {"f": "f", "C": "c", "no": None})],
)
def test_it_tells_what_each_name_is(names: tuple[str, ...], found: dict[str, Any]) -> None:
    """Functions become stubs without asking again."""
    with peer_of("def f(): pass\nclass C: pass\nx = 1\n_y = 2\n", names) as (_, sock):
        head, lines = reply(sock)

    assert head == [0, "k"] and plain.decode(lines[0]) == found


@pytest.mark.parametrize("code", ["def f(:", "raise ValueError('x')", "import sys; sys.exit(0)", "x = \0"])
def test_code_that_does_not_load_is_a_failure(code: str) -> None:
    """Exit codes mean nothing."""
    with peer_of(code) as (_, sock):
        assert reply(sock)[0][:2] == [0, "e"]


def test_the_same_object_is_lent_once() -> None:
    """`is` works on the other side."""
    with peer_of("") as (peer, _):
        thing = object()
        assert (
            peer.lend(thing)["h"][0] == peer.lend(thing)["h"][0] and peer.borrow("y", peer.lend(thing)["h"][0]) is thing
        )


def test_an_await_runs_the_coroutine() -> None:
    """In a loop that stays."""

    async def later() -> int:
        return 3

    try:
        assert lending.OPERATIONS["await"](later()) == 3 == lending.OPERATIONS["await"](later())
    finally:
        lending.loops.pop(os.getpid()).close()
