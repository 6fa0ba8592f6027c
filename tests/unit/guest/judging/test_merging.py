"""What a callee did to its arguments is done to the caller's."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from hotbed.guest.judging import merging, plain


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([1, [2]], [3]),
        ({"a": [1], "b": 2}, {"a": [1, 2]}),
        ({1}, {2}),
        (bytearray(b"a"), bytearray(b"")),
        (deque([1, 2]), deque([3])),
    ],
)
def test_merge_makes_equal_in_place(old: Any, new: Any) -> None:
    """Lists, dicts, sets, bytearrays, deques, nested."""
    assert merging.merge(old, new) and old == new
    assert not merging.merge(1, 2)


def test_arguments_are_as_many_as_there_were() -> None:
    """A callee may not add any."""
    given: list[Any] = [[1], {"a": 1}]
    merging.merge_arguments(given, [[1, 2], {}])

    assert given == [[1, 2], {}]
    with pytest.raises(plain.BadData):
        merging.merge_arguments(given, [[1]])
