"""Slots bound what is under way, whatever the number of environments; who is interrupted has lost nothing."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hotbed.errors import PoolBusy
from tests.unit.pools.conftest import COUNTER, Pooling

SLEEPER = COUNTER.replace("    count += 1\n", "    count += 1\n    time.sleep(0.05)\n")


def test_no_more_requests_than_slots_are_under_way(pooling: Pooling) -> None:
    """Four sleeps of 50 ms on two slots take two turns."""
    pool, _ = pooling(4, SLEEPER, slots=2)
    pool.reset()
    begun = time.perf_counter()

    results = pool.step([0] * 4)[0]

    assert results == [{"count": 1}] * 4
    assert 0.1 <= time.perf_counter() - begun < 0.19


def test_a_deadline_starts_when_the_request_is_sent_not_when_it_queues(pooling: Pooling) -> None:
    """Else the last of many would time out without having run."""
    pool, _ = pooling(6, SLEEPER, slots=1, step_timeout_s=0.15)
    pool.reset()

    details = pool.step([0] * 6)[3]

    assert [detail["status"] for detail in details] == ["ok"] * 6


def test_a_dead_worker_gives_its_slot_back(pooling: Pooling) -> None:
    """However it died."""
    pool, _ = pooling(6, slots=1, step_timeout_s=0.2)
    pool.reset()

    details = pool.step(["os._exit(3)", 0, "time.sleep(60)", 0, "os.write(3, b'garbage!')", 0])[3]

    assert [detail["status"] for detail in details] == ["exit", "ok", "timeout", "ok", "protocol", "ok"]


def test_the_first_to_finish_come_first_though_slots_are_few(pooling: Pooling) -> None:
    """recv(k) and turns together."""
    pool, _ = pooling(5, slots=2)
    pool.reset()
    pool.send(["time.sleep(0.2)", 0, 0, 0, 0])

    early = pool.recv(4)
    late = pool.recv(1)

    assert sorted(detail["index"] for detail in early[3]) == [1, 2, 3, 4]
    assert late[3][0]["index"] == 0


def test_failing_to_load_does_not_stop_those_in_the_queue(pooling: Pooling) -> None:
    """All six fail, none hangs."""
    pool, _ = pooling(6, "raise ValueError('no')", slots=1)

    assert [bool(task) for task in pool.reset()] == [False] * 6


def test_in_boltz_mode_each_episode_is_a_fresh_fork(pooling: Pooling) -> None:
    """Loaded once, and nothing of an episode reaches the next."""
    text = "import time\nfrom hotbed.env import serve\nseen = []\nborn = time.time()\n" + (
        "def reset(seed):\n    seen.append(1)\n    return [len(seen), born]\n"
        "serve(reset=reset, step=lambda a: (0, 0, True, {}))"
    )
    pool, workers = pooling(2, text, mode="boltz", slots=1, preload=True)

    first, second = pool.reset(), pool.reset()

    assert [task[0] for task in first + second] == [1, 1, 1, 1]
    assert len({task[1] for task in first + second}) == 1
    assert workers.opened == [0, 1, 0, 1]


@contextmanager
def interrupted(after_s: float) -> Iterator[None]:
    """Somebody presses Ctrl-C."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_step_that_was_interrupted_can_still_be_waited_for(pooling: Pooling) -> None:
    """With what had come before the interrupt."""
    pool, _ = pooling(2)
    pool.reset()
    with interrupted(0.2):
        pool.step([0, "time.sleep(0.6)"])

    with pytest.raises(PoolBusy):
        pool.step([0, 0])
    assert pool.step_wait()[0] == [{"count": 1}, {"count": 1}]
    assert pool.step([0, 0])[0] == [{"count": 2}, {"count": 2}]


def test_a_reset_that_was_interrupted_can_be_asked_for_again(pooling: Pooling) -> None:
    """In fresh workers: what the first ones still say is nobody's."""
    pool, _ = pooling(2, COUNTER.replace("    count = 0\n", "    count = 0\n    time.sleep(0.6 if seed == 7 else 0)\n"))
    pool.reset(seed=1)
    with interrupted(0.2):
        pool.reset(seed=[7, 1])

    assert pool.reset(seed=3) == [{"task": 3}, {"task": 4}]
    assert pool.step([0, 0])[0] == [{"count": 1}, {"count": 1}]
