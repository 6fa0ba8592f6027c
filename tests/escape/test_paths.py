"""Attempts to break the claims on files. What each tries is in `hotbed.runtime.selfcheck`."""

from __future__ import annotations

from tests.escape.conftest import Attempting


def test_host_files_unseen(attempt: Attempting) -> None:
    """Homes, `/etc/shadow`, sockets, the node's state and every mount of the host that the template does ..."""
    attempt("host-files-unseen")


def test_host_files_read_only(attempt: Attempting) -> None:
    """What is shared from the host cannot be changed, replaced or remounted."""
    attempt("host-files-read-only")


def test_downloads_stay_inside(attempt: Attempting) -> None:
    """No symbolic link, `..`, rename race or magic link in a path that the client reads or writes leads ..."""
    attempt("downloads-stay-inside")


def test_only_regular_files_travel(attempt: Attempting) -> None:
    """Pipes, devices, sockets and directories are refused as files, without blocking."""
    attempt("only-regular-files-travel")


def test_deep_trees_removed(attempt: Attempting) -> None:
    """A tree deeper than any path, or without permissions, does not outlive its sandbox."""
    attempt("deep-trees-removed")
