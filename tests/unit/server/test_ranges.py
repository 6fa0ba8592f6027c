"""One range of a file's bytes."""

from __future__ import annotations

import pytest

from hotbed.errors import RangeUnsatisfiable
from hotbed.server.ranges import parse_range, unsatisfied


def test_a_range_is_within_its_file() -> None:
    """Whatever was asked for; what is not understood is the whole file."""
    assert parse_range("bytes=2-99", 10) == (2, 10)
    assert parse_range("bytes=-3", 10) == (7, 10)
    assert parse_range("lines=1-2", 10) is None


def test_a_range_that_is_not_there_is_answered_with_the_size() -> None:
    """So whoever asked knows what there is (RFC 9110, 15.5.17)."""
    with pytest.raises(RangeUnsatisfiable) as refused:
        parse_range("bytes=10-", 10)

    answer = unsatisfied(refused.value, 10)

    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */10")
