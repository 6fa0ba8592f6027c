"""When to ask again."""

from __future__ import annotations

import pytest

from hotbed.errors import AtCapacity, Draining, Error, NodeUnavailable, RateLimited, SandboxFailed
from hotbed.sdk.retries import REDIAL_LIMIT_S, pause_before_redial, pause_before_retry


@pytest.mark.parametrize("refusal", [AtCapacity("full"), RateLimited("slow"), Draining("bye")])
def test_refusal_that_ran_nothing_is_retried(refusal: Error) -> None:
    """The tree promises it."""
    assert pause_before_retry(refusal, 0, 0.0, 60.0) is not None


@pytest.mark.parametrize("failure", [NodeUnavailable("gone"), SandboxFailed("broken"), Error("what")])
def test_anything_else_is_not(failure: Error) -> None:
    """It may have run."""
    assert pause_before_retry(failure, 0, 0.0, 60.0) is None


def test_pauses_grow_and_stay_short() -> None:
    """A second at most, and half of that again as jitter."""
    pauses = [pause_before_retry(AtCapacity("full"), attempt, 0.0, 60.0) or 0 for attempt in (0, 20)]

    assert 0.05 <= pauses[0] < 0.1
    assert 1.0 <= pauses[1] <= 1.5


def test_no_pause_outlasts_the_callers_patience() -> None:
    """The bound is the time already spent and the pause together."""
    assert pause_before_retry(AtCapacity("full", retry_after_s=5), 0, 56.0, 60.0) is None


def test_node_that_stays_away_is_given_up() -> None:
    """After a few seconds."""
    assert pause_before_redial(3, 0.0) is not None
    assert pause_before_redial(3, REDIAL_LIMIT_S) is None
