"""Attempts to break the claims on identity and rights. What each tries is in `hotbed.runtime.selfcheck`."""

from __future__ import annotations

from tests.escape.conftest import Attempting


def test_never_host_root(attempt: Attempting) -> None:
    """No user inside maps to uid 0 outside, even when the node runs as root."""
    attempt("never-host-root")


def test_no_capabilities(attempt: Attempting) -> None:
    """Every capability set is empty and `no_new_privs` is set."""
    attempt("no-capabilities")


def test_no_nested_user_namespaces(attempt: Attempting) -> None:
    """A new user namespace would bring capabilities back."""
    attempt("no-nested-user-namespaces")


def test_no_host_clock_or_name(attempt: Attempting) -> None:
    """The clock cannot be set, and the sandbox's host name cannot be changed."""
    attempt("no-host-clock-or-name")
