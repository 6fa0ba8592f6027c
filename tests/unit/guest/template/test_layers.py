"""Layers: where they are, and in which order they are stood on. The rest is in tests/conformance and tests/escape."""

from __future__ import annotations

import os
import socket

import pytest

from hotbed.guest import frames
from hotbed.guest.template import layers


def test_the_newest_layer_is_looked_at_first() -> None:
    """What a sandbox removed is gone in its forks."""
    assert layers.lower(2, "/skel") == "/.hotbed/layers/2/u:/.hotbed/layers/1/u:/skel"
    assert layers.lower(0, "/skel") == "/skel"


def test_the_highest_pile_fits_into_a_mount() -> None:
    """mount(2) takes one page of options."""
    assert len(layers.lower(layers.MOST, "/.hotbed/skel")) < 4000


def test_a_holder_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node is told, not left to wait."""

    def refuse(_pid: int) -> int:
        raise PermissionError(1, "not yours")

    monkeypatch.setattr(layers, "enter", refuse)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        layers._serve({"restack": False}, os.getpid(), theirs)
        header, _, fds = frames.Connection(ours).receive()

    assert (header["op"], fds) == ("error", []) and "not yours" in header["message"]
