"""Jobs: execs that nobody waits for. They end with their sandbox, and not with whoever started them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hotbed.wire.checks import require
from hotbed.wire.execs import ExecResponse, OutputEvent
from hotbed.wire.processes import SIGNALS

JobState = Literal["running", "ended", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as it stands. `result` once it has ended, `error` where we failed to run it."""

    id: str
    state: JobState
    started_at: str
    output_total: int = 0
    result: ExecResponse | None = None
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobList:
    """A sandbox's jobs, oldest first."""

    jobs: tuple[JobRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutput:
    """What a job printed from an offset on. `next` is the offset to ask for next, `dropped` what was kept no longer."""

    id: str
    state: JobState
    next: int
    dropped: int = 0
    events: tuple[OutputEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalJob:
    """A signal for a job's process group."""

    signal: int

    def __post_init__(self) -> None:
        require(0 < self.signal <= SIGNALS, f"signal must be 1 to {SIGNALS}, not {self.signal}")
