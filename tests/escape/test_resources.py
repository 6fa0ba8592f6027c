"""Attempts to break the claims on resources. What each tries is in `hotbed.runtime.selfcheck`."""

from __future__ import annotations

from tests.escape.conftest import Attempting


def test_fork_bomb_contained(attempt: Attempting) -> None:
    """Processes stop at the limit, and the tree is gone with its sandbox."""
    attempt("fork-bomb-contained")


def test_memory_bomb_contained(attempt: Attempting) -> None:
    """Memory stops at the limit."""
    attempt("memory-bomb-contained")


def test_disk_fill_contained(attempt: Attempting) -> None:
    """Writing stops with `ENOSPC` at the quota, in bytes and in files."""
    attempt("disk-fill-contained")


def test_descriptor_bomb_contained(attempt: Attempting) -> None:
    """Open files stop at the limit."""
    attempt("descriptor-bomb-contained")


def test_output_flood_contained(attempt: Attempting) -> None:
    """Output is drained, kept head and tail up to the cap, and counted."""
    attempt("output-flood-contained")


def test_cpu_hog_contained(attempt: Attempting) -> None:
    """A busy loop gets its share, and its end at the deadline."""
    attempt("cpu-hog-contained")


def test_huge_arguments_refused(attempt: Attempting) -> None:
    """An argument list over the kernel's limit is a clear error, and nothing was run."""
    attempt("huge-arguments-refused")
