"""Lanes at a node elsewhere keep the promises of lanes at hand."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hotbed.errors import Error, NodeUnavailable, NotFound, ProtocolError
from hotbed.guest import frames
from hotbed.guest.environments import values
from hotbed.pools import relayed
from hotbed.pools.relayed import RelayedLanes


class Node:
    """Answers exchanges with what a test has put ready."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, Any], list[tuple[int, bytes]]]] = []
        self.answers: list[bytes] = []

    def exchange(self, body: bytes, timeout_s: float) -> bytes:
        """One."""
        decoder = frames.Decoder()
        decoder.feed(body)
        (head, _), *posts = [frame for frame in iter(decoder.next, None) if frame is not None]
        assert all(header["timeout_s"] > 0 for header, _ in posts)
        self.asked.append((head, [(header["worker"], data) for header, data in posts]))
        return self.answers.pop(0) if self.answers else answer()


def answer(*arrivals: tuple[dict[str, Any], bytes], grants: tuple[dict[str, Any], ...] = ()) -> bytes:
    """What a node says."""
    return frames.pack({"grants": list(grants)}) + b"".join(frames.pack(*arrival) for arrival in arrivals)


def said(index: int, **header: Any) -> tuple[dict[str, Any], bytes]:
    """A worker's frame."""
    return {"worker": index}, values.pack(header)


def made(n: int = 3) -> tuple[RelayedLanes, Node]:
    """Lanes and their node."""
    node = Node()
    lanes = RelayedLanes(node.exchange)
    for index in range(n):
        lanes.attach(index, None, deadline_s=time.perf_counter() + 5)
    return lanes, node


def test_a_batch_is_one_exchange() -> None:
    """Requests wait for the waiting."""
    lanes, node = made()
    node.answers = [answer(said(1, id=1), said(0, id=1), said(2, id=1))]
    for index in range(3):
        lanes.post(index, b"frame%d" % index, deadline_s=time.perf_counter() + 5)
    assert node.asked == []
    arrivals = lanes.collect(range(3), 3)

    [(head, posts)] = node.asked
    assert (sorted(head["collect"]), head["want"]) == ([0, 1, 2], 3)
    assert posts == [(0, b"frame0"), (1, b"frame1"), (2, b"frame2")]
    assert [(one.worker, one.header) for one in arrivals] == [(0, {"id": 1}), (1, {"id": 1}), (2, {"id": 1})]


def test_it_asks_again_until_there_are_enough_and_keeps_the_rest() -> None:
    """The node's patience is shorter than a long step."""
    lanes, node = made()
    node.answers = [answer(), answer(said(2, id=1)), answer(said(0, id=1), said(1, id=1))]

    first = lanes.collect([0, 2], 1)
    second = lanes.collect([0], 1)
    third = lanes.collect([1], 1)

    assert [one.worker for one in (*first, *second, *third)] == [2, 0, 1]
    assert len(node.asked) == 3


@pytest.mark.parametrize(
    ("arrival", "trouble"),
    [
        (({"worker": 0, "trouble": "timeout", "reason": "late"}, b""), "timeout"),
        (({"worker": 0}, b"\xff" * 9), "protocol"),
        (({"worker": 0}, b"\0\0\0\2\0\0\0\0[]"), "protocol"),
    ],
)
def test_troubles_and_nonsense_fail_the_lane(arrival: tuple[dict[str, Any], bytes], trouble: str) -> None:
    """The worker's frames are checked here: the node does not read them."""
    lanes, node = made()
    node.answers = [answer(arrival)]

    assert lanes.collect([0], 1)[0].trouble == trouble


def test_what_a_forgotten_worker_says_is_dropped() -> None:
    """And what was to be sent to it."""
    lanes, node = made()
    lanes.post(1, b"frame", deadline_s=time.perf_counter() + 5)
    lanes.detach(1)
    lanes.detach(1)
    node.answers = [answer(said(1, id=1), said(0, id=2))]

    assert lanes.collect([0, 1], 2)[0].header == {"id": 2}
    assert node.asked[0][1] == []
    assert 1 not in lanes
    lanes.close()
    assert 0 not in lanes


def test_grants_and_refusals_come_from_the_node() -> None:
    """Without sockets."""
    lanes, node = made()
    node.answers = [answer(grants=({"index": 0, "isolation": "fork"}, {"index": 1, "reason": "no room"}))]
    grants = lanes.open([0, 1], 9.0)

    assert node.asked[0][0] == {"open": [0, 1], "open_timeout_s": 9.0}
    assert [(one.index, one.isolation, one.reason, one.sock) for one in grants] == [
        (0, "fork", "", None),
        (1, "", "no room", None),
    ]


def test_large_requests_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are sent before anybody waits."""
    monkeypatch.setattr(relayed, "SEND_FROM", 10)
    lanes, node = made()
    lanes.post(0, b"x" * 20, deadline_s=time.perf_counter() + 5)

    assert node.asked == [({}, [(0, b"x" * 20)])]


@pytest.mark.parametrize("body", [b"", frames.pack({}), frames.pack({"grants": 3})])
def test_an_answer_that_is_none_is_told(body: bytes) -> None:
    """Not taken for silence."""
    lanes, node = made()
    node.answers = [body]
    with pytest.raises(ProtocolError):
        lanes.collect([0], 1)


@pytest.mark.parametrize("error", [NodeUnavailable("it is gone"), NotFound("no pool")])
def test_a_node_that_is_gone_closes_every_lane(error: Error) -> None:
    """As the lanes to a node on this machine do: nobody waits for an answer that cannot come."""

    def refuse(body: bytes, timeout_s: float) -> bytes:
        raise error

    lanes = RelayedLanes(refuse)
    for index in range(2):
        lanes.attach(index, None, deadline_s=time.perf_counter() + 5)
        lanes.post(index, b"frame", deadline_s=time.perf_counter() + 5)

    assert [(one.worker, one.trouble) for one in lanes.collect([0, 1], 2)] == [(0, "closed"), (1, "closed")]
    with pytest.raises(type(error)):
        lanes.open([0], 1.0)
