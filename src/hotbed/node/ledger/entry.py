"""One thing that happened: a rollout, a sandbox made, an exec or a file in it, a grade, an environment's episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

EntryKind = Literal["rollout", "create", "exec", "process", "put", "policy", "grade", "episode", "egress"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of the ledger. `at` is seconds since the epoch; `request` is the wire request as JSON.

    `sandbox_id` ties together what happened in one sandbox, in order; `group_id` ties siblings of a GRPO group.
    `details` holds what only some kinds have (checks of a grade, steps of commands), as plain data.
    """

    id: str
    kind: EntryKind
    at: float
    template: str
    template_digest: str
    request: bytes
    seed: str = ""
    determinism: str = "none"
    seed_ack: str = "off"
    isolation: str = ""
    status: str = "ok"
    exit_code: int | None = None
    signal: int | None = None
    reward: float | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_total: int = 0
    stderr_total: int = 0
    fork_ms: float = 0.0
    exec_ms: float = 0.0
    total_ms: float = 0.0
    sandbox_id: str = ""
    group_id: str = ""
    tenant: str = ""
    label: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
