"""What tenants used, and what was done with rights that not everybody has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantUsage:
    """One tenant's; the node's own user has no name. Seconds, counts and bytes of requests and answers."""

    tenant: str
    sandboxes: int = 0
    rollouts: int = 0
    execs: int = 0
    grades: int = 0
    sandbox_s: float = 0.0
    cpu_s: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """The usage in the hours that a span of time touches: the caller's, or everybody's for who may see all."""

    since: str
    until: str
    tenants: tuple[TenantUsage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One action. `at` is RFC 3339, UTC; `seq` orders the lines."""

    seq: int
    at: str
    actor: str
    action: str
    target: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """A page of the audit log, newest first. `next` is the `before` of the page after, absent on the last."""

    actions: tuple[AuditRow, ...] = ()
    next: int | None = None
