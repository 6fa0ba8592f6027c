"""Requests to grade are checked where they are made."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hotbed.errors import Error
from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.grading import BATCH_LIMIT, GradeDone, GradeLine, GradeRequest

SPEC = {"type": "unit_tests", "tests": "assert solve(1) == 2"}


@pytest.mark.parametrize(
    "change",
    [
        {"codes": ("x",) * (BATCH_LIMIT + 1)},
        {"seeds": ("ab" * 32,)},
        {"seeds": ("short", None)},
        {"concurrency": 0},
        {"deadline_s": 0},
        {"deadline_s": -1.0},
        {"group_id": "g" * 201},
    ],
)
def test_a_request_that_cannot_be_is_refused(change: dict[str, Any]) -> None:
    """On both ends of the wire."""
    with pytest.raises(Error):
        GradeRequest(**{"spec": SPEC, "codes": ("x", "y"), **change})


def test_requests_and_lines_survive_the_wire() -> None:
    """With code and with files."""
    request = GradeRequest(spec=SPEC, codes=("x", {"a.py": "y"}), seeds=("ab" * 32, None), group_id="g", deadline_s=2.5)
    line = GradeLine(index=1, result={"reward": None}, id="grade_1")
    done = GradeDone(group_id="g", graded=2, invalid=1, statuses={"ok": 1, "infra_error": 1})

    assert msgspec.convert(to_wire(request), GradeRequest) == request  # as the server reads it
    assert from_wire(GradeLine, to_wire(line)) == line
    assert from_wire(GradeDone, to_wire(done)) == done
