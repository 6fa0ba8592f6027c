"""What a caller gives is taken in any natural form, and refused before anything runs when it does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hotbed.errors import InvalidRequest, WrongActionCount
from hotbed.pools.arguments import brief, counted, masked, named


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
