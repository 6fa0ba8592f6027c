"""Attempts to break the claims on network. What each tries is in `hotbed.runtime.selfcheck`."""

from __future__ import annotations

from tests.escape.conftest import Attempting


def test_no_host_network(attempt: Attempting) -> None:
    """The host's loopback and its abstract UNIX sockets are out of reach."""
    attempt("no-host-network")


def test_no_egress(attempt: Attempting) -> None:
    """No packet and no name lookup leaves the sandbox."""
    attempt("no-egress")


def test_ports_lead_inside(attempt: Attempting) -> None:
    """A connection into a sandbox never ends at a port of the host."""
    attempt("ports-lead-inside")
