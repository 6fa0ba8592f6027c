"""The W3C trace that a request belongs to, for its lines in the log and in the ledger.

It is a variable of the request's task, so that what the request starts (an exec, the end of its sandbox) belongs to the
trace as well, without being told.
"""

from __future__ import annotations

import logging
import re
from contextvars import ContextVar

from hotbed.node.ledger.entry import Entry
from hotbed.wire.routes import TRACE_HEADER

log = logging.getLogger(__name__)

HEADER = TRACE_HEADER
CURRENT: ContextVar[str] = ContextVar("hotbed_traceparent", default="")
_IDS: ContextVar[dict[str, str] | None] = ContextVar("hotbed_ids", default=None)
_NOTED = "event=noted kind=%s id=%s sandbox=%s tenant=%s status=%s total_ms=%.3f"
_VALID = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


def accept(header: str) -> str:
    """A `traceparent` as it came; nothing for what is none (https://www.w3.org/TR/trace-context/#traceparent-header)."""
    return header[:55] if _VALID.fullmatch(header) else ""


def begin() -> None:
    """Remember what the request that begins here will be known by."""
    _IDS.set({})


def noted(entry: Entry, *, tenant: str) -> None:
    """What came of the request: a line of the ledger by which it can be looked up."""
    log.debug(_NOTED, entry.kind, entry.id, entry.sandbox_id, tenant, entry.status, entry.total_ms)
    if (found := _IDS.get()) is not None:
        found["hotbed.id"] = entry.id
        if entry.sandbox_id:
            found["hotbed.sandbox"] = entry.sandbox_id


def ids() -> dict[str, str]:
    """What the request is known by, as attributes of a span."""
    return dict(_IDS.get() or {})


def trace_id() -> str:
    """The id of the trace that this belongs to, or nothing."""
    return CURRENT.get()[3:35]
