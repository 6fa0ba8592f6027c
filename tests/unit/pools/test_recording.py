"""Episodes are told of once, when they are over, and whole or with what is missing said."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from hotbed.errors import NodeUnavailable
from hotbed.pools import recording
from hotbed.pools.recording import Recorder
from hotbed.pools.replies import Failure, Stepped
from hotbed.pools.seats import Phase, Seat
from hotbed.wire.pools import EPISODES_LIMIT, Episode
from tests.unit.pools.conftest import Pooling


class Keeper:
    """Who is told; away while `away`."""

    def __init__(self) -> None:
        self.kept: list[Episode] = []
        self.asked: list[int] = []
        self.away = False

    def __call__(self, episodes: Sequence[Episode]) -> None:
        """Keep them."""
        if self.away:
            raise NodeUnavailable("away")
        self.asked.append(len(episodes))
        self.kept += episodes


def running(seed: int = 7, index: int = 0) -> Seat:
    """A seat whose episode has begun."""
    return Seat(index=index, phase=Phase.RUNNING, seed=seed, episode=0, task={"question": seed})


def shows(observation: object, *, done: bool = False) -> Stepped:
    """A step's answer."""
    return Stepped(observation, 0.5, done, False, {}, 0.1)


def test_an_episode_is_its_seed_its_actions_and_what_they_showed() -> None:
    """Told when it is done, and not before."""
    keeper, seat = Keeper(), running()
    recorder = Recorder(keeper)
    recorder.began(seat)
    recorder.stepped(seat, "look", shows([1]))
    recorder.flush()
    assert keeper.kept == []

    recorder.stepped(seat, b"\xff", shows([2], done=True))
    recorder.flush()
    recorder.close()

    [one] = keeper.kept
    assert (one.worker, one.number, one.seed, one.status, one.reward, one.unkept) == (0, 0, 7, "ok", 1.0, 0)
    assert json.loads(one.actions) == ["look", {"$": ["bytes", "/w=="]}]
    task, first, last = map(json.loads, one.shown.splitlines())
    assert (task, first["observation"], last["terminated"]) == ({"task": {"question": 7}}, [1], True)


def test_what_breaks_off_says_how() -> None:
    """By a reset, a failure, a reset that failed, a copy, the pool's end."""
    keeper, seat = Keeper(), running()
    recorder = Recorder(keeper)
    recorder.began(seat)
    recorder.began(seat)
    recorder.stepped(seat, 1, Failure(status="exit", reason="exit code 7"))
    recorder.stepped(seat, 2, shows([]))  # of no episode
    seat.fail(Failure(status="error", reason="KeyError"))
    recorder.began(seat)
    recorder.began(running(), branched=True)
    recorder.close()

    assert [(one.status, one.branched) for one in keeper.kept] == [
        ("unfinished", False),
        ("exit", False),
        ("error", False),
        ("unfinished", True),
    ]
    assert keeper.kept[1].reason == "exit code 7"


def test_what_is_too_large_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The beginning is kept, and no step after one that is not."""
    monkeypatch.setattr(recording, "TEXT_LIMIT", 200)
    keeper, seat = Keeper(), running()
    recorder = Recorder(keeper)
    recorder.began(seat)
    for observation in ("a", "b" * 300, "c"):
        recorder.stepped(seat, 0, shows(observation))
    recorder.close()

    assert (keeper.kept[0].actions, keeper.kept[0].unkept, keeper.kept[0].reward) == ("[0]", 2, 1.5)


def test_a_node_that_is_away_gets_them_later() -> None:
    """What it never got is said."""
    keeper = Keeper()
    recorder = Recorder(keeper)
    keeper.away = True
    recorder.began(running())
    recorder.began(running())
    recorder.flush()
    keeper.away = False
    recorder.flush()
    assert len(keeper.kept) == 1

    keeper.away = True
    with pytest.warns(UserWarning, match="1 episodes are not in the ledger"):
        recorder.close()


def test_many_go_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """By number and by size."""
    keeper = Keeper()
    recorder = Recorder(keeper)
    for index in range(EPISODES_LIMIT + 1):
        recorder.began(running(index=index))
    recorder.close()
    monkeypatch.setattr(recording, "_AT_ONCE", 10)
    for index in range(2):
        recorder.began(running(index=index))
    recorder.close()

    assert keeper.asked == [EPISODES_LIMIT, 1, 1, 1]


@pytest.mark.parametrize("autoreset", ["disabled", "next_step", "same_step"])
def test_recorded_episodes_are_those_that_were_seen(pooling: Pooling, autoreset: str) -> None:
    """Each once, when the call that ended it returns; the last ones with the pool."""
    pool, workers = pooling(2, record=True, autoreset=autoreset)
    pool.reset(seed=[5, 6])
    for action in (1, 2):
        pool.step([action, action])
    assert workers.episodes == []
    pool.step([3, "os._exit(7)"])
    assert sorted((one.seed, one.status, one.actions) for one in workers.episodes) == [
        (5, "ok", "[1,2,3]"),
        (6, "exit", '[1,2,"os._exit(7)"]'),
    ]
    pool.reset(seed=8)
    pool.close()

    last = workers.episodes[-2:]

    assert [(one.seed, one.status) for one in last] == [(8, "unfinished"), (9, "unfinished")]
