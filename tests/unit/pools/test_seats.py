"""A seat outlives its episodes and its workers."""

from __future__ import annotations

import numpy as np

from hotbed.pools.replies import Failure
from hotbed.pools.seats import Logged, Phase, Seat, digest_of


def test_a_new_episode_forgets_the_last_and_counts_on() -> None:
    """The worker it runs in is another matter."""
    seat = Seat(index=0, steps=4, log=[Logged(None, b"")])
    seat.fail(Failure(status="exit", reason="x"))
    seat.begin(9)

    assert (seat.episode, seat.seed, seat.steps, seat.failure, seat.log) == (0, 9, 0, None, [])
    assert seat.phase is Phase.FAILED


def test_requests_are_never_numbered_twice() -> None:
    """Else a late answer could pass for a new one."""
    seat = Seat(index=0)
    numbers = [seat.next_request() for _ in range(3)]
    seat.begin(1)

    assert seat.next_request() not in numbers


def test_observations_are_compared_by_value() -> None:
    """Arrays and bytes included."""
    assert digest_of({"a": np.zeros(3)}) == digest_of({"a": np.zeros(3)}) != digest_of({"a": np.ones(3)})
