"""What a caller gives is taken in any natural form, and refused before anything runs when it does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hotbed.errors import BadAction, InvalidRequest, WrongActionCount
from hotbed.pools.arguments import brief, counted, masked, named
from tests.unit.pools.conftest import COUNTER, Pooling


@pytest.mark.parametrize("actions", [[1, 2], (1, 2), np.array([1, 2])])
def test_actions_come_as_any_sequence(actions: Any) -> None:
    """A flat numpy array as Python numbers."""
    assert counted(actions, 2) == [1, 2]
    assert all(type(action) is int for action in counted(actions, 2))


def test_rows_of_an_array_are_actions() -> None:
    """One row for each worker."""
    rows = counted(np.zeros((2, 3)), 2)

    assert [row.shape for row in rows] == [(3,), (3,)]


def test_a_single_action_without_its_list_is_recognised() -> None:
    """The message says what to write."""
    with pytest.raises(WrongActionCount, match=r"step\(\[action\]\)"):
        counted({"code": "x"}, 1)


def test_masks_are_anything_with_truth_values() -> None:
    """`mask=done`, a numpy array, ints."""
    assert masked([True, False, True], 3) == [0, 2]
    assert masked(np.array([0, 1, 0]), 3) == [1]
    assert masked(None, 2) == [0, 1]
    with pytest.raises(InvalidRequest, match="2 entries for 3"):
        masked([True, False], 3)


def test_workers_are_named_once_each() -> None:
    """Two actions for one worker make no sense."""
    assert named([2, 0], 3) == [2, 0]
    assert named(None, 2) == [0, 1]
    with pytest.raises(InvalidRequest, match="from 0 to 2"):
        named([1, 1], 3)


def test_long_lists_are_shortened_in_messages() -> None:
    """An error about 200 workers stays readable."""
    assert brief(list(range(200))) == "0, 1, 2, 3, 4, 5, 6, 7, ... (200 in all)"


@pytest.mark.parametrize("actions", [[], [1], [1, 2, 3], {"code": "x"}, "ab", b"ab", None, 3])
def test_anything_but_one_action_for_each_worker_is_refused(pooling: Pooling, actions: Any) -> None:
    """`step({"code": ...})` without the brackets is the mistake everybody makes once."""
    pool, _ = pooling(2)
    pool.reset()

    with pytest.raises(WrongActionCount):
        pool.step(actions)

    assert pool.step([0, 0])[0] == [{"count": 1}, {"count": 1}]


@pytest.mark.parametrize("action", [{1, 2}, object(), lambda: 0, 1j])
def test_an_action_that_is_no_data_is_refused_and_named_and_nothing_runs(pooling: Pooling, action: Any) -> None:
    """Not even in the workers whose action is fine."""
    pool, _ = pooling(2)
    pool.reset()

    with pytest.raises(BadAction, match="worker 1"):
        pool.step([0, action])

    assert pool.step([0, 0])[0] == [{"count": 1}, {"count": 1}]


def test_bytes_and_numpy_actions_go_by_value(pooling: Pooling) -> None:
    """What a policy samples needs no conversion."""
    text = COUNTER.replace('{"count": count}', "[type(action).__name__, action]")
    pool, _ = pooling(3, text)
    pool.reset()

    results = pool.step(np.array([1, 2, 3]))[0]
    others = pool.step([b"\0\xff", np.int64(4), {"a": np.zeros(2)}])[0]

    assert results == [["int", 1], ["int", 2], ["int", 3]]
    assert others[:2] == [["bytes", b"\0\xff"], ["int", 4]]
    assert others[2][0] == "dict"


def test_masks_and_worker_lists_must_fit(pooling: Pooling) -> None:
    """Before anything is sent."""
    pool, _ = pooling(2)
    pool.reset()
    with pytest.raises(InvalidRequest, match="3 entries for 2"):
        pool.step([0, 0], mask=[1, 1, 1])
    for workers in ([0, 0], [2], [-1]):
        with pytest.raises(InvalidRequest, match="different numbers"):
            pool.send([0] * len(workers), workers)
