"""What the ledger tells: what ran, what came of it, and whether it comes out the same again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRow:
    """One line of the ledger. `at` is RFC 3339, UTC; `seq` orders the lines; times are milliseconds."""

    id: str
    seq: int
    kind: str
    at: str
    template: str
    template_digest: str = ""
    status: str = ""
    exit_code: int | None = None
    signal: int | None = None
    reward: float | None = None
    seed: str = ""
    determinism: str = "none"
    seed_ack: str = "off"
    isolation: str = ""
    sandbox_id: str = ""
    group_id: str = ""
    label: str = ""
    request_hash: str = ""
    stdout_hash: str = ""
    stderr_hash: str = ""
    stdout_total: int = 0
    stderr_total: int = 0
    fork_ms: float = 0.0
    exec_ms: float = 0.0
    total_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutList:
    """A page of the ledger, newest first. `next` is the `before` of the page after, absent on the last."""

    rollouts: tuple[RolloutRow, ...] = ()
    next: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutDetail:
    """One line with what was asked and what was printed. Bytes that are not UTF-8 are in the `_b64` field."""

    row: RolloutRow
    request: Mapping[str, Any] = field(default_factory=dict)
    stdout: str = ""
    stderr: str = ""
    stdout_b64: bytes | None = None
    stderr_b64: bytes | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where a replay first differs in one respect: a stream and the byte offset, or a field and its two values.

    `source` is the likely reason: clock, rng, pid, address, order, network, timing or unknown.
    """

    what: str
    offset: int | None = None
    recorded: str = ""
    replayed: str = ""
    source: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """What came of running a rollout again in a fresh fork of the same template digest."""

    id: str
    identical: bool
    replay_id: str
    template: str
    template_digest: str
    seed: str
    determinism: str
    seed_ack: str
    differences: tuple[Difference, ...] = ()
    replayed: int = 1
    pinned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReplay:
    """The replay of every rollout of a group."""

    group_id: str
    identical: bool
    reports: tuple[ReplayReport, ...] = ()
