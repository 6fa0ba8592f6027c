"""Which trace a call belongs to."""

from __future__ import annotations

import pytest
from opentelemetry import trace as api
from opentelemetry.sdk.trace import TracerProvider

from hotbed.errors import InvalidRequest
from hotbed.sdk.tracing import current, traced

OURS = f"00-{'a' * 32}-{'b' * 16}-01"
PROCESS = f"00-{'c' * 32}-{'d' * 16}-00"


def test_what_is_said_wins_over_the_process() -> None:
    """And is over with its block."""
    with traced(OURS):
        assert current(PROCESS) == OURS
    assert current(PROCESS) == PROCESS
    assert current() == ""


def test_the_current_span_is_the_parent() -> None:
    """A trainer that is traced has nothing to do."""
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("trainer")

    with tracer.start_as_current_span("step") as span:
        known = span.get_span_context()
        assert current(PROCESS) == f"00-{known.trace_id:032x}-{known.span_id:016x}-{known.trace_flags:02x}"
    assert not api.get_current_span().get_span_context().is_valid and current() == ""


@pytest.mark.parametrize("text", ["", "00-12-34-01", OURS + "\r\nX-Evil: 1", OURS.upper(), 7])
def test_what_is_no_traceparent_is_refused(text: str) -> None:
    """It would go into a request's head as it is."""
    with pytest.raises(InvalidRequest, match="traceparent"), traced(text):
        pass


def test_a_process_variable_that_is_none_is_left_out() -> None:
    """It is somebody else's to set."""
    assert current("nonsense\r\n") == ""
