"""When to ask again: pure decisions over values."""

from __future__ import annotations

import random

from hotbed.errors import AtCapacity, Draining, Error

REDIAL_LIMIT_S = 5.0
_FIRST_S = 0.05
_LONGEST_S = 1.0


def pause_before_retry(failure: Error, attempt: int, elapsed_s: float, patience_s: float) -> float | None:
    """Seconds to wait before a refused call is sent again; None when it should not be.

    Only refusals that promise that nothing ran are retried. The node's own Retry-After is a lower bound; jitter on top
    keeps a trainer's threads from coming back in step.
    """
    if not isinstance(failure, (AtCapacity, Draining)):
        return None
    asked = failure.retry_after_s
    base = asked if asked is not None else _backoff(attempt)
    pause = base * (1 + random.random() / 2)
    return pause if elapsed_s + pause < patience_s else None


def pause_before_redial(attempt: int, elapsed_s: float) -> float | None:
    """Seconds to wait before a node that refused the connection is tried again; None when it is time to say so."""
    pause = _backoff(attempt) * (1 + random.random() / 2)
    return pause if elapsed_s + pause < REDIAL_LIMIT_S else None


def _backoff(attempt: int) -> float:
    return float(min(_LONGEST_S, _FIRST_S * 2**attempt))
