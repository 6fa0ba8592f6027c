"""Messages and calls between peers."""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.guest.judging import calls, plain


class Doubler(calls.Peer):
    """Answers with its argument doubled; mutates lists in place."""

    def perform(self, op: str, target: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if op == "mutate":
            args[0].append(kwargs.get("with", 0))
            return args[0]
        return args[0] * 2


def pair() -> tuple[calls.Peer, socket.socket]:
    """An asking peer, and the answering peer's thread behind a socket."""
    ours, theirs = socket.socketpair()

    def answer() -> None:
        try:
            Doubler(calls.Channel(theirs), -1, -1).serve()
        except (calls.Gone, calls.Broken):
            theirs.close()

    threading.Thread(target=answer, daemon=True).start()
    return calls.Peer(calls.Channel(ours), 1, 1), ours


def test_a_question_is_answered() -> None:
    """Values of any size, across many reads."""
    peer, sock = pair()

    assert peer.ask("run", "f", [21]) == 42
    assert peer.ask("run", "f", ["ab" * 1_000_000]) == "ab" * 2_000_000
    sock.close()


def test_what_the_callee_does_to_an_argument_is_done_here() -> None:
    """The caller's object stays the same one, also as the answer."""
    peer, sock = pair()
    inner = [1]
    argument: list[Any] = [inner]

    answer = peer.ask("mutate", None, [argument], {"with": 5})

    assert answer is argument and argument == [[1], 5] and argument[0] is inner
    sock.close()


@given(st.binary(max_size=60))
def test_whatever_comes_back_is_an_answer_or_an_error_of_ours(noise: bytes) -> None:
    """Fuzzed replies: no other exception, no hang."""
    ours, theirs = socket.socketpair()
    theirs.sendall(struct.pack("!I", len(noise)) + noise)
    theirs.close()
    try:
        calls.Peer(calls.Channel(ours), 1, 1).read()
    except (calls.Broken, calls.Gone):
        pass
    finally:
        ours.close()


@pytest.mark.parametrize(
    "reply",
    [b'[2,"k"]\n1', b'[1,"k"]', b'[1,"k"]\n1\n2\n3', b'[1,"z"]\n1', b'{"a":1}\n1', b'[1,"e",[],null]\n[]',
     b'[true,"k"]\n1', b'["1","k"]\n1', b'[1,"k",1]\n1', b'[1,"e",[1],null]\n[]'],
)  # fmt: skip
def test_only_the_answer_to_the_question_counts(reply: bytes) -> None:
    """An id that was not asked, a shape that is none."""
    ours, theirs = socket.socketpair()
    theirs.sendall(struct.pack("!I", len(reply)) + reply)
    with pytest.raises((calls.Broken, plain.BadData)):
        calls.Peer(calls.Channel(ours), 1, 1).ask("run", "f", [])
    ours.close()
    theirs.close()


def test_a_message_over_its_limit_is_refused_by_its_length() -> None:
    """A gigabyte is never held."""
    ours, theirs = socket.socketpair()
    theirs.sendall(struct.pack("!I", 1 << 30))
    with pytest.raises(calls.Broken, match="over the limit"):
        calls.Channel(ours, limit=1000).receive()
    ours.close()
    theirs.close()


def test_a_slow_drip_is_noticed() -> None:
    """Each piece is a chance to give up."""
    ours, theirs = socket.socketpair()
    channel = calls.Channel(ours, tick_s=0.01)
    seen: list[int] = []

    def wait(received: int) -> None:
        seen.append(received)
        theirs.sendall(b" ")
        if len(seen) > 5:
            raise TimeoutError

    channel.wait = wait
    theirs.sendall(struct.pack("!I", 1000))
    with pytest.raises(TimeoutError):
        channel.receive()
    ours.close()
    theirs.close()
