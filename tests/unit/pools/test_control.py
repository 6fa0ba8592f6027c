"""A grant without a socket is a refusal that says why."""

from __future__ import annotations

from hotbed.pools.control import Grant, WorkerEnd


def test_a_refusal_needs_no_more_than_a_reason() -> None:
    """And an end no more than a status."""
    assert Grant(index=1, reason="no room").sock is None
    assert (WorkerEnd(index=1, status="exit").stderr, WorkerEnd(index=1, status="exit").exit_code) == ("", None)
