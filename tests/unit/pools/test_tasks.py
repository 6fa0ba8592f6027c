"""A task that is none says so wherever it is used."""

from __future__ import annotations

import json

import pytest

from hotbed.errors import EnvFailed
from hotbed.pools.tasks import FailedTask


def test_it_is_false_printable_and_refuses_to_be_read() -> None:
    """`task["task"]` in the published example would otherwise be a bare TypeError."""
    task = FailedTask(index=3, status="error", reason="Traceback: boom")

    assert not task
    assert json.loads(json.dumps(task)) == {"index": 3, "status": "error", "reason": "Traceback: boom"}
    with pytest.raises(EnvFailed, match="worker 3 has no task, its environment failed: Traceback: boom"):
        task["task"]
