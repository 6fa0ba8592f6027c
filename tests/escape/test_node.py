"""Attempts to break the claims on the node. What each tries is in `hotbed.runtime.selfcheck`."""

from __future__ import annotations

from tests.escape.conftest import Attempting


def test_forged_frames_refused(attempt: Attempting) -> None:
    """A program that takes over its agent and lies on its channel gets an error for its own sandbox, and ..."""
    attempt("forged-frames-refused")


def test_isolation_never_lowered(attempt: Attempting) -> None:
    """When a stage of isolation fails, the sandbox fails."""
    attempt("isolation-never-lowered")
