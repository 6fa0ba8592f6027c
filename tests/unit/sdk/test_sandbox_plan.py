"""What both faces know."""

from __future__ import annotations

import os

import pytest

from hotbed.errors import InvalidRequest, NotFound, SandboxGone
from hotbed.sdk.sandbox_plan import SandboxPlan, found_entry
from hotbed.wire.sandboxes import CreateSandbox, FileAnswer, SandboxCreated

MADE = SandboxCreated(id="sb1", template="python", template_id="python", fork_time_ms=1.5, warm_hit=True)


def plan() -> SandboxPlan:
    """One that has not started."""
    return SandboxPlan(CreateSandbox(template="python"), 60.0)


def test_it_starts_once_and_ends_once() -> None:
    """The id to end is given out a single time."""
    made = plan()
    assert made.needs_start()
    made.adopt(MADE)

    assert (made.live_id(), made.warm_hit, made.fork_time_ms) == ("sb1", True, 1.5)
    assert [made.let_go(), made.let_go()] == ["sb1", None]
    with pytest.raises(SandboxGone):
        made.needs_start()


def test_it_can_be_started_again_after_its_end() -> None:
    """Which is what reset does."""
    made = plan()
    made.let_go()
    made.adopt(MADE)

    assert not made.needs_start()


def test_id_of_what_does_not_run_is_an_error() -> None:
    """With what to do."""
    with pytest.raises(SandboxGone, match=r"start\(\)"):
        plan().live_id()


def test_another_process_ends_nothing() -> None:
    """It was forked with the object."""
    made = plan()
    made.adopt(MADE)
    made._pid = os.getpid() + 1

    assert made.let_go() is None


def test_default_timeout_is_checked() -> None:
    """Before it is used."""
    with pytest.raises(InvalidRequest, match="default_timeout"):
        SandboxPlan(CreateSandbox(template="python"), 0)


def test_stat_without_an_entry_is_an_error() -> None:
    """Never a None for the caller to trip over."""
    with pytest.raises(NotFound):
        found_entry(FileAnswer(path="/a"), "/a")
