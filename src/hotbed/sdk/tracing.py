"""The W3C trace that a call belongs to, which goes to the node with it.

It is what `traced` says, else the current span of OpenTelemetry where the program has loaded that (it is never imported
for this), else the process's own TRACEPARENT. The node has it in its log, its ledger and its spans, and on the answer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from hotbed.wire.checks import require

_VALID = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_OPENTELEMETRY = "opentelemetry.trace"

_told: ContextVar[str] = ContextVar("hotbed_told_traceparent", default="")


@contextmanager
def traced(traceparent: str) -> Iterator[None]:
    """Calls in this block belong to that trace, a W3C `traceparent`. A program with OpenTelemetry needs no block."""
    valid = isinstance(traceparent, str) and _VALID.fullmatch(traceparent) is not None
    require(valid, f"traceparent is not of the form 00-<32 hex>-<16 hex>-<2 hex>: {traceparent!r:.80}")
    token = _told.set(traceparent)
    try:
        yield
    finally:
        _told.reset(token)


def current(process: str = "") -> str:
    """The `traceparent` of a call made now; nothing without a trace. `process` is the whole process's."""
    return _told.get() or _of_span() or (process if _VALID.fullmatch(process) else "")


def _of_span() -> str:
    api: Any = sys.modules.get(_OPENTELEMETRY)
    if api is None:
        return ""
    span = api.get_current_span().get_span_context()
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}" if span.is_valid else ""
