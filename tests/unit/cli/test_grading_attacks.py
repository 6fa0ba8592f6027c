"""Attempts on the claims about grading, told one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hotbed.cli import grading_attacks
from hotbed.cli.grading_attacks import GradingAttempt
from hotbed.errors import NodeUnavailable
from hotbed.grading import GradeResult
from hotbed.runtime.selfcheck.bench import Broken


def break_it(client: Any) -> None:
    """Succeeds."""
    raise Broken("paid")


def fail(client: Any) -> None:
    """Cannot be made."""
    raise NodeUnavailable("gone")


def test_what_is_broken_and_what_could_not_be_tried_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keeps the others from being tried."""

    @contextmanager
    def nobody() -> Iterator[None]:
        yield None

    monkeypatch.setattr(grading_attacks, "own_client", nobody)
    attempts = [
        GradingAttempt(claim="one", run=break_it),
        GradingAttempt(claim="two", run=fail),
        GradingAttempt(claim="three", run=lambda client: None),
    ]
    monkeypatch.setattr(grading_attacks, "ATTEMPTS", attempts)
    verdicts = list(grading_attacks.run_all())

    assert [(verdict.claim, verdict.held) for verdict in verdicts] == [("one", False), ("two", False), ("three", True)]
    assert "paid" in verdicts[0].detail and "gone" in verdicts[1].detail
    assert grading_attacks.find("two") is attempts[1]


def test_a_wrong_reward_names_its_candidate() -> None:
    """With what it came to."""
    results = [GradeResult(reward=0.0, status="failed"), GradeResult(reward=1.0)]
    grading_attacks.rewards_are(results, [0.0, 1.0])

    with pytest.raises(Broken, match="candidate 1 got 1.0"):
        grading_attacks.rewards_are(results, [0.0, 0.0])
