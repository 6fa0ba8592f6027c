"""Sets of addresses."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hotbed.runtime.livefork import runs
from hotbed.runtime.livefork.runs import PAGE, Run

sets = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 6)).map(lambda pair: (pair[0], pair[0] + pair[1])))


def members(of: list[Run]) -> set[int]:
    """The addresses, one by one."""
    return {address for start, end in of for address in range(start, end)}


@given(sets, sets)
def test_operations_are_those_of_sets(one: list[Run], two: list[Run]) -> None:
    """Checked against sets of single addresses; results are sorted, disjoint and apart."""
    these, those = runs.union(one), runs.union(two)

    for found, expected in (
        (runs.union(one, two), members(one) | members(two)),
        (runs.minus(these, those), members(one) - members(two)),
        (runs.both(these, those), members(one) & members(two)),
    ):
        assert members(found) == expected
        assert runs.size(found) == len(expected)
        assert all(left[1] <= right[0] for left, right in zip(found, found[1:], strict=False))


def test_marks_become_runs_of_pages() -> None:
    """One byte a page."""
    assert list(runs.matching(re.compile(b"x+"), b"xx.x", 0)) == [(0, 2 * PAGE), (3 * PAGE, 4 * PAGE)]
