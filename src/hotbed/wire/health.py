"""The node itself: is it there, what can it do, and the lease a client holds on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`status` is ok or draining. `running` counts sandboxes until they are really gone."""

    status: str
    version: str
    node_id: str
    sessions: int
    running: int
    queued: int
    max_inflight: int
    templates: tuple[str, ...]
    isolation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseGranted:
    """The first line of a held lease. The connection must show a byte every `ttl_s`, or either end is dead."""

    lease_id: str
    ttl_s: float
