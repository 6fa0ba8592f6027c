"""A judge's worker."""

from __future__ import annotations

import mmap
import socket
from typing import Any

from hotbed.grading import UnitTestReward
from hotbed.grading.protocol import judge_spec
from hotbed.guest import frames
from hotbed.guest.judging.judge_worker import STYLES, Worker


def told(spec: dict[str, Any]) -> dict[str, Any]:
    ours, theirs = socket.socketpair()
    with ours, theirs, mmap.mmap(-1, 1) as answered:
        Worker(frames.Connection(theirs), spec, answered).run({})
        theirs.shutdown(socket.SHUT_WR)
        try:
            return frames.Connection(ours).receive()[0]
        except frames.Closed:
            return {}


def test_a_broken_spec_is_told_once_for_all() -> None:
    """Before any candidate is asked."""
    spec = judge_spec(UnitTestReward(tests="assert solve(1)"), "0" * 64)

    assert told({**spec, "support": "("})["op"] == "spec_error"
    assert told(spec) == {}


def test_every_style_of_a_spec_has_a_judge() -> None:
    """None is forgotten."""
    assert set(STYLES) == {"script", "check", "unittest", "pytest", "cases", "property"}
