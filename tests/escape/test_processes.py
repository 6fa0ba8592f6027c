"""Attempts to break the claims on processes. What each tries is in `hotbed.runtime.selfcheck`."""

from __future__ import annotations

from tests.escape.conftest import Attempting


def test_agent_memory_closed(attempt: Attempting) -> None:
    """The agent is pid 1 inside and the same user as the program."""
    attempt("agent-memory-closed")


def test_agent_survives_signals(attempt: Attempting) -> None:
    """Killing or stopping pid 1, or every process at once, leaves the agent alive and the result reported."""
    attempt("agent-survives-signals")


def test_agent_keeps_its_limits(attempt: Attempting) -> None:
    """A program can take neither descriptors, memory nor turns on the CPU from pid 1."""
    attempt("agent-keeps-its-limits")


def test_host_processes_unseen(attempt: Attempting) -> None:
    """Processes outside have no number inside."""
    attempt("host-processes-unseen")


def test_siblings_unseen(attempt: Attempting) -> None:
    """Two sandboxes of one template share no file, process, shared memory, socket or semaphore."""
    attempt("siblings-unseen")


def test_timeout_kills_the_tree(attempt: Attempting) -> None:
    """A program that stops itself, ignores every signal, double-forks or starts sessions of its own is ..."""
    attempt("timeout-kills-the-tree")


def test_orphans_die_with_the_sandbox(attempt: Attempting) -> None:
    """Nothing that a sandbox started is alive after it ended."""
    attempt("orphans-die-with-the-sandbox")


def test_no_inherited_descriptors(attempt: Attempting) -> None:
    """A program starts with descriptors 0, 1 and 2 only."""
    attempt("no-inherited-descriptors")


def test_node_environment_unseen(attempt: Attempting) -> None:
    """No variable, argument, memory or secret of the node or the client can be read inside."""
    attempt("node-environment-unseen")
