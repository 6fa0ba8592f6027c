"""The trace that a request belongs to."""

from __future__ import annotations

import pytest

from hotbed.node import trace

GOOD = f"00-{'ab' * 16}-{'cd' * 8}-01"


@pytest.mark.parametrize(
    "header",
    ["", "nonsense", f"00-{'0' * 32}-{'cd' * 8}-01", f"00-{'ab' * 16}-{'0' * 16}-01", f"ff-{'ab' * 16}-{'cd' * 8}-01"],
)
def test_what_is_no_traceparent_is_ignored(header: str) -> None:
    """As the standard asks: a request is served with a broken one too."""
    assert trace.accept(header) == ""


def test_a_traceparent_is_taken_as_it_is() -> None:
    """A later version may have more after it."""
    assert trace.accept(GOOD) == GOOD
    assert trace.accept(f"01{GOOD[2:]}-more") == f"01{GOOD[2:]}"


def test_the_trace_id_is_that_of_the_task() -> None:
    """And nothing outside of a request."""
    assert trace.trace_id() == ""
    token = trace.CURRENT.set(GOOD)
    assert trace.trace_id() == "ab" * 16
    trace.CURRENT.reset(token)
