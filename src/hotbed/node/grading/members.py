"""One candidate of a group on its way to a verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hotbed.grading.verdicts import GradeResult
from hotbed.runtime.base import Box, Determinism, ProgramEnd

OnResult = Callable[[int, GradeResult], Awaitable[None]]

_OUTPUT_TAIL = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A candidate: code or files by name, and the seed that its sandbox gets."""

    index: int
    candidate: str | Mapping[str, str]
    seed: str
    determinism: Determinism = "none"


def about_box(result: GradeResult, box: Box, *, end: ProgramEnd | None = None, **timings: float) -> GradeResult:
    """A result with what is known of the sandbox that the candidate ran in."""
    facts: dict[str, Any] = {
        "isolation": box.isolation,
        "warm_hit": box.warm_hit,
        "fork_time_ms": round(box.fork_time_ms, 3),
    }
    if end is not None:
        facts["stdout"] = _tail(end.stdout)
        facts["stderr"] = _tail(end.stderr)
    return replace(result, sandbox={**result.sandbox, **facts}, timings={**result.timings, **timings})


def _tail(data: bytes) -> str:
    return data[-_OUTPUT_TAIL:].decode("utf-8", "replace")
