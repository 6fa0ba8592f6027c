"""Frames out, whatever order they come back in, and nothing a worker sends can do more than fail its own lane."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator

import pytest

from hotbed.guest.environments import lane, values
from hotbed.pools.lanes import Lanes


class Ends:
    """Lanes with this test at both ends."""

    def __init__(self, n: int) -> None:
        self.lanes, self.far = Lanes(), []
        for index in range(n):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.far.append(theirs)
            theirs.settimeout(5)
            self.lanes.attach(index, ours, deadline_s=soon())
            theirs.send(values.pack({"op": "ready"}))
        assert len(self.lanes.collect(range(n), n)) == n

    def ask(self, index: int, request_id: int, *, timeout_s: float = 5.0) -> None:
        """Post a request and read it at the far end."""
        self.lanes.post(index, values.pack({"id": request_id}), deadline_s=soon(timeout_s))
        self.far[index].recv(lane.PACKET)

    def answer(self, index: int, request_id: int) -> None:
        """Answer it."""
        self.far[index].send(values.pack({"id": request_id}))


def soon(timeout_s: float = 5.0) -> float:
    """A deadline."""
    return time.perf_counter() + timeout_s


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Three lanes."""
    made = Ends(3)
    yield made
    made.lanes.close()
    for far in made.far:
        far.close()


def test_arrivals_come_in_their_own_order_and_only_for_whom_was_asked(ends: Ends) -> None:
    """One nobody waits for is kept."""
    for index in range(3):
        ends.ask(index, 1)
    ends.answer(2, 1)
    ends.answer(0, 1)

    first = ends.lanes.collect([2], 1)
    ends.answer(1, 1)
    rest = ends.lanes.collect(range(2), 2)

    assert [arrival.worker for arrival in first] == [2]
    assert sorted(arrival.worker for arrival in rest) == [0, 1]
    assert all(arrival.header == {"id": 1} for arrival in rest)


def test_each_lane_has_its_own_deadline(ends: Ends) -> None:
    """The others are waited for as long as they may take."""
    ends.ask(0, 1, timeout_s=0.05)
    ends.ask(1, 1)
    arrivals = ends.lanes.collect([0, 1], 1)
    ends.answer(1, 1)
    more = ends.lanes.collect([1], 1)

    assert [(arrival.worker, arrival.trouble) for arrival in arrivals] == [(0, "timeout")]
    assert more[0].header == {"id": 1}


@pytest.mark.parametrize(
    ("sent", "trouble"),
    [
        (b"\0\0\0\2\0\0\0\0[]", "protocol"),
        (b"\xff" * 8, "protocol"),
        (values.pack({"id": 1}) * 2, "protocol"),
        (b"", "closed"),
    ],
)
def test_what_is_no_answer_fails_the_lane_for_good(ends: Ends, sent: bytes, trouble: str) -> None:
    """It is not listened to again."""
    ends.ask(0, 1)
    if sent:
        ends.far[0].send(sent)
    else:
        ends.far[0].close()

    arrival = ends.lanes.collect([0], 1)[0]

    assert (arrival.header, arrival.trouble) == (None, trouble)


def test_a_lane_that_speaks_unasked_fails_and_does_not_keep_the_others_from_waiting(ends: Ends) -> None:
    """A flood on one lane must not spin the client."""
    ends.ask(1, 1, timeout_s=0.2)
    for _ in range(3):
        ends.far[0].send(b"x" * 9)
    before = os.times()

    late = ends.lanes.collect([1], 1)[0]
    loud = ends.lanes.collect([0], 1)[0]

    assert (late.trouble, loud.trouble) == ("timeout", "protocol")
    assert os.times().user - before.user < 0.1


def test_what_was_said_before_an_abrupt_end_is_heard(ends: Ends) -> None:
    """An end that closes with a request unread resets the lane; its last words were sent before."""
    ends.answer(0, 1)
    ends.lanes.post(0, values.pack({"id": 1}), deadline_s=soon())
    ends.far[0].close()

    assert ends.lanes.collect([0], 1)[0].header == {"id": 1}
    assert ends.lanes.collect([0], 1)[0].trouble == "closed"


def test_a_request_larger_than_the_socket_goes_out_while_waiting(ends: Ends) -> None:
    """Posting never blocks."""
    frame = values.pack({"id": 1, "action": b"x" * (2 << 20)})
    ends.lanes.post(0, frame, deadline_s=soon())
    ends.ask(1, 1)
    ends.answer(1, 1)
    assert ends.lanes.collect([1], 1)[0].worker == 1

    inbox, request = lane.Inbox(), None
    ends.far[0].setblocking(False)
    while request is None:
        try:
            request = inbox.take(ends.far[0].recv(lane.PACKET))
        except BlockingIOError:
            ends.ask(1, 2)
            ends.answer(1, 2)
            ends.lanes.collect([1], 1)

    assert len(request["action"]) == 2 << 20


def test_a_worker_that_does_not_read_its_requests_times_out(ends: Ends) -> None:
    """However large they are."""
    ends.lanes.post(0, values.pack({"action": b"x" * (2 << 20)}), deadline_s=soon(0.05))

    assert ends.lanes.collect([0], 1)[0].trouble == "timeout"


def test_lanes_can_be_let_go_and_taken_again(ends: Ends) -> None:
    """A fresh worker takes the place of a dead one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ends.lanes.attach(0, ours, deadline_s=soon())
    theirs.send(values.pack({"op": "ready"}))

    assert ends.far[0].recv(1) == b""
    assert ends.lanes.collect([0], 1)[0].header == {"op": "ready"}
    ends.lanes.detach(0)
    ends.lanes.detach(0)
    assert 0 not in ends.lanes
    theirs.close()
