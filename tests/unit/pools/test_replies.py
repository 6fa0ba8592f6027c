"""Nothing a worker sends is believed beyond being data of the promised shape."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.pools.replies import Failure, Stepped, Task, read_ready, read_reset, read_step

GOOD = {"id": 3, "us": 1500, "step": ["seen", 1, False, True, {"a": 1}]}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["id", "step", "task", "info", "status", "reason", "us", "op", "closes"])


def test_a_step_as_it_should_be() -> None:
    """Reward as float, time in milliseconds."""
    assert read_step(GOOD, 3) == Stepped("seen", 1.0, False, True, {"a": 1}, 1.5)


@pytest.mark.parametrize(
    "change",
    [
        {"id": 4},
        {"id": True},
        {"id": "3"},
        {"step": None},
        {"step": [0, 1.0, False, False]},
        {"step": [0, "1", False, False, {}]},
        {"step": [0, True, False, False, {}]},
        {"step": [0, float("nan"), False, False, {}]},
        {"step": [0, 10**400, False, False, {}]},
        {"step": [0, 1.0, 0, False, {}]},
        {"step": [0, 1.0, False, False, []]},
        {"status": "ok", "reason": "x"},
        {"status": "error"},
        {"status": ["error"], "reason": "x"},
    ],
)
def test_a_step_that_is_otherwise_is_a_broken_protocol(change: dict[str, Any]) -> None:
    """And fatal for the worker."""
    failure = read_step({**GOOD, **change}, 3)

    assert isinstance(failure, Failure)
    assert (failure.status, failure.fatal) == ("protocol", True)


@given(st.dictionaries(keys, anything, max_size=5))
def test_no_header_makes_a_reader_raise(header: dict[str, Any]) -> None:
    """The client's loop has no other guard."""
    for found in (read_step(header, 1), read_reset(header, 1)):
        assert isinstance(found, (Failure, Stepped, Task))
    assert read_ready(header) is None or isinstance(read_ready(header), Failure)


def test_an_exception_leaves_the_worker_usable_and_a_limit_does_not() -> None:
    """A full disk stays full."""
    error = read_step({"id": 3, "status": "error", "reason": "Traceback"}, 3)
    disk = read_step({"id": 3, "status": "disk", "reason": "Traceback"}, 3)

    assert isinstance(error, Failure) and isinstance(disk, Failure)
    assert (error.fatal, disk.fatal) == (False, True)


def test_reasons_are_cut_at_their_head() -> None:
    """The end of a traceback is what tells; a worker must not fill the trainer's log."""
    failure = read_step({"id": 3, "status": "error", "reason": "x" * 100_000 + "ValueError"}, 3)

    assert isinstance(failure, Failure)
    assert len(failure.reason) <= 8192
    assert failure.reason.endswith("ValueError")


def test_the_first_word_is_ready_or_failed() -> None:
    """A worker that failed to load says why."""
    failed = read_ready({"op": "failed", "status": "error", "reason": "SyntaxError"})

    assert read_ready({"op": "ready", "closes": False}) is None
    assert failed == Failure(status="error", reason="SyntaxError", fatal=True)


@pytest.mark.parametrize("us", [-1, 1.5, "1", None, True, 1 << 70])
def test_an_odd_time_counts_as_none(us: Any) -> None:
    """It is information only."""
    answer = read_step({**GOOD, "us": us}, 3)

    assert isinstance(answer, Stepped)
    assert answer.env_ms == 0.0
