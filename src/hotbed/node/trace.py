"""The W3C trace that a request belongs to, for its lines in the log and in the ledger.

It is a variable of the request's task, so that what the request starts (an exec, the end of its sandbox) belongs to the
trace as well, without being told.
"""

from __future__ import annotations

import re
from contextvars import ContextVar

HEADER = "traceparent"
CURRENT: ContextVar[str] = ContextVar("hotbed_traceparent", default="")
_VALID = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


def accept(header: str) -> str:
    """A `traceparent` as it came; nothing for what is none (https://www.w3.org/TR/trace-context/#traceparent-header)."""
    return header[:55] if _VALID.fullmatch(header) else ""


def trace_id() -> str:
    """The id of the trace that this belongs to, or nothing."""
    return CURRENT.get()[3:35]
