"""Attempts to be paid for nothing. What each tries is in `hotbed.cli.grading_attacks`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hotbed import Client
from hotbed.cli import grading_attacks

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a node that nobody else uses."""
    with grading_attacks.own_client() as opened:
        yield opened


def test_verdicts_formed_elsewhere(client: Client) -> None:
    """Exit codes, patched tools, overloaded operators, planted files, shadowed names."""
    grading_attacks.find("verdicts-formed-elsewhere").run(client)


def test_candidates_hold_no_secret(client: Client) -> None:
    """It looks for what it is tested on wherever it can look."""
    grading_attacks.find("candidates-hold-no-secret").run(client)


def test_forged_answers_refused(client: Client) -> None:
    """Into the channel itself."""
    grading_attacks.find("forged-answers-refused").run(client)


def test_what_tests_hand_over_leads_nowhere(client: Client) -> None:
    """Paths, mocks, objects and exceptions of the tests, turned against them."""
    grading_attacks.find("what-tests-hand-over-leads-nowhere").run(client)


def test_siblings_share_nothing(client: Client) -> None:
    """The first leaves answers, the others look for them."""
    grading_attacks.find("siblings-share-nothing").run(client)


def test_jobs_leave_nothing_to_the_next(client: Client) -> None:
    """Whatever tests leave is gone, or the sandbox is."""
    grading_attacks.find("jobs-leave-nothing-to-the-next").run(client)


def test_failures_cannot_be_chosen(client: Client) -> None:
    """A number comes out of every way to die."""
    grading_attacks.find("failures-cannot-be-chosen").run(client)
