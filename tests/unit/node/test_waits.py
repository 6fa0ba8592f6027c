"""What a client can have waited for."""

from __future__ import annotations

import pytest

from hotbed.node.leases import Lease
from hotbed.node.tenants import DEFAULT_TIERS, Tenant
from hotbed.node.waits import BURSTS, CLIENTS, LONGEST_S, Burst, Meter, Waits, steps, total


class Clock:
    """Time as a test tells it."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def pass_s(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


def only(waits: Waits) -> Meter:
    """The one meter that there is."""
    [meter] = waits
    return meter


def test_one_request_is_told_by_its_phases(clock: Clock) -> None:
    """With one in flight, each phase has exactly the time it took."""
    waits = Waits(clock=clock)
    with waits.begin(None) as wait:
        clock.pass_s(1.0)
        wait.enter("fork")
        clock.pass_s(2.0)
        wait.enter("exec")
        clock.pass_s(4.0)

    [burst] = only(waits).told(clock.now_s)

    assert (burst.begun_s, burst.ended_s, burst.busy_s, burst.requests) == (100.0, 107.0, 7.0, 1)
    assert total([burst.seconds]) == {"queue": 1.0, "fork": 2.0, "exec": 4.0, "grade": 0.0, "step": 0.0}


def test_an_instant_is_divided_among_the_requests_in_flight(clock: Clock) -> None:
    """Two beside each other do not make two seconds of one: the phases add up to the time that passed."""
    waits = Waits(clock=clock)
    with waits.begin(None), waits.begin(None, "exec"):
        clock.pass_s(3.0)
        with waits.begin(None, "grade"):
            clock.pass_s(3.0)

    [burst] = only(waits).told(clock.now_s)

    assert burst.busy_s == pytest.approx(6.0)
    assert total([burst.seconds]) == pytest.approx({"queue": 2.5, "fork": 0, "exec": 2.5, "grade": 1.0, "step": 0})


def test_a_fork_and_an_exec_in_one_are_told_apart_by_their_lengths(clock: Clock) -> None:
    """A rollout's sandbox gets its program before it is made, so the node sees one stretch of time for both."""
    waits = Waits(clock=clock)
    with waits.begin(None, "exec") as wait:
        clock.pass_s(4.0)
        wait.forked(10.0, 30.0)

    [burst] = only(waits).told(clock.now_s)

    assert burst.seconds == pytest.approx({"fork": 1.0, "exec": 3.0})


def test_silence_ends_a_burst_and_a_moment_does_not(clock: Clock) -> None:
    """What lies between two requests of one loop is not the trainer's thinking."""
    waits = Waits(clock=clock)
    for pause_s in (0.01, 5.0, 0.0):
        with waits.begin(None, "exec"):
            clock.pass_s(1.0)
        clock.pass_s(pause_s)

    bursts = only(waits).told(clock.now_s)

    assert [(burst.requests, round(burst.busy_s, 6)) for burst in bursts] == [(2, 2.0), (1, 1.0)]
    assert bursts[0].ended_s == pytest.approx(102.01)
    assert bursts[1].begun_s == pytest.approx(107.01)


def test_a_burst_that_goes_on_is_told_as_far_as_it_has_come(clock: Clock) -> None:
    """Who looks during a step sees it, and looking changes nothing."""
    waits = Waits(clock=clock)
    with waits.begin(None, "exec"):
        clock.pass_s(1.0)
        first = only(waits).told(clock.now_s)
        clock.pass_s(1.0)
    second = only(waits).told(clock.now_s)

    assert [burst.busy_s for burst in (*first, *second)] == [1.0, 2.0]
    assert second[0].seconds == {"exec": 2.0}


def test_a_burst_without_an_end_is_kept_in_pieces_that_add_up(clock: Clock) -> None:
    """An asynchronous trainer always has something in flight; its history must not be one burst of a week."""
    waits = Waits(clock=clock)
    with waits.begin(None, "exec"):
        for _ in range(10):
            with waits.begin(None, "grade"):
                clock.pass_s(LONGEST_S)

    bursts = only(waits).told(clock.now_s)

    assert len(bursts) > 5
    assert sum(burst.busy_s for burst in bursts) == pytest.approx(10 * LONGEST_S)
    assert total(burst.seconds for burst in bursts)["exec"] == pytest.approx(5 * LONGEST_S)


def test_clients_are_told_apart_by_their_leases_and_others_by_their_tenant() -> None:
    """One trainer's steps are not another's."""
    waits = Waits()
    tenant = Tenant("acme", DEFAULT_TIERS["pro"])
    leases = [Lease(), Lease(tenant=tenant), None, tenant.lease, None]
    for lease in leases:
        with waits.begin(lease):
            pass

    assert [(bool(meter.client), meter.tenant) for meter in waits] == [
        (True, ""),
        (True, "acme"),
        (False, "acme"),
        (False, ""),
    ]


def test_memory_is_bounded(clock: Clock) -> None:
    """Clients that come and go, and steps without end."""
    waits = Waits(clock=clock)
    for _ in range(CLIENTS + 5):
        with waits.begin(Lease()):
            pass
    for _ in range(BURSTS + 5):
        with waits.begin(None):
            clock.pass_s(1.0)
        clock.pass_s(1.0)

    assert len(list(waits)) == CLIENTS
    assert len(list(waits)[-1].bursts) == BURSTS


def burst(begun_s: float, ended_s: float) -> Burst:
    """A burst that was busy all the time."""
    length = ended_s - begun_s
    return Burst(begun_s=begun_s, ended_s=ended_s, busy_s=length, requests=2, seconds={"exec": length})


def test_a_step_begins_where_the_one_before_ended() -> None:
    """Its thinking comes before its requests; of the first one nobody knows when it began."""
    first, second = steps([burst(10, 12), burst(12.2, 13), burst(20, 21)], pause_s=1.0)

    assert (first.begun_s, first.ended_s, first.requests, first.first) == (10, 13, 4, True)
    assert (second.begun_s, second.ended_s, second.waited_s, second.first) == (13, 21, 1, False)
    assert second.share == pytest.approx(1 / 8)


def test_the_pause_decides_what_a_step_is() -> None:
    """The same history in small steps and in one."""
    bursts = [burst(at, at + 0.5) for at in range(5)]

    assert (len(steps(bursts, pause_s=0.2)), len(steps(bursts, pause_s=0.9)), steps([], pause_s=1)) == (5, 1, [])


def test_a_pools_client_tells_what_the_node_cannot_see(clock: Clock) -> None:
    """Its lanes pass the node by; what it tells is a client of its own, and is believed where it can be true."""
    waits = Waits(clock=clock)
    waits.note_pool("pl_1", None, [[3.0, 1.0, 1.5, 40], [0.5, 0.0, 0.5, 1]])
    waits.note_pool("pl_1", None, [[3.0, 1.0, 1.5, 40]])  # told twice

    [first, second] = only(waits).told(clock.now_s)
    assert (first.begun_s, first.ended_s, first.busy_s, first.requests) == (97.0, 99.0, 1.5, 40)
    assert (second.seconds, only(waits).client) == ({"step": 0.5}, "pl_1")


@pytest.mark.parametrize(
    "nonsense",
    [None, "x", [], [1], [[]], [[1, 2, 3]], [["a", 0, 0, 1]], [[1, 2, 0, 1]], [[2, 1, 9, 1]], [[1e9, 0, 0, 1]]]
    + [[[float("nan"), 0, 0, 1]], [[1, 0, -1, 1]], [[1, 0, 1, True]], [[1, 0, 1, 1.5]]],
)
def test_nonsense_about_a_pool_is_ignored(nonsense: object) -> None:
    """It comes from a client, and nothing depends on it."""
    waits = Waits()
    waits.note_pool("pl_1", None, nonsense)

    assert list(waits) == []
