"""What a sandbox may reach, changed while it lives, and what sandboxes tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotbed.wire.checks import require_egress


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEgress:
    """Hold a living sandbox to another policy. Connections that it would not have let go are ended."""

    egress: Mapping[str, Any]

    def __post_init__(self) -> None:
        require_egress(self.egress)


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressState:
    """The policy a sandbox has, with its presets written out; `closed_ports` are those a program inside keeps."""

    id: str
    egress: Mapping[str, Any] = field(default_factory=dict)
    closed_ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRow:
    """Attempts of one moment that were alike. `at` is RFC 3339, UTC; `verdict` is allowed, denied, cut or failed."""

    seq: int
    at: str
    kind: str
    verdict: str
    name: str = ""
    address: str = ""
    port: int = 0
    method: str = ""
    reason: str = ""
    count: int = 1
    bytes_up: int = 0
    bytes_down: int = 0
    leak: bool = False
    sandbox_id: str = ""
    rollout_id: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressList:
    """A page of attempts, newest first. `next` is the `before` of the page after, absent on the last."""

    attempts: tuple[EgressRow, ...] = ()
    next: int | None = None
