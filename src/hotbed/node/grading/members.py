"""One candidate of a group on its way to a verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hotbed.errors import BadPath, FileDenied, FileMissing, NoSpace, NotAFile
from hotbed.grading.verdicts import GradeResult, infra_failure
from hotbed.runtime.base import Box, Determinism, ProgramEnd

OnResult = Callable[[int, GradeResult], Awaitable[None]]

#: What a candidate's own files and what it left on its disk can come to.
FILE_TROUBLE = (BadPath, FileDenied, FileMissing, NoSpace, NotAFile)

_OUTPUT_TAIL = 4096
_LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A candidate: code or files by name, and the seed that its sandbox gets."""

    index: int
    candidate: str | Mapping[str, str]
    seed: str
    determinism: Determinism = "none"


def check_names(candidate: str | Mapping[str, str]) -> None:
    """Names of files below the working directory. Raises `BadPath`: a model may have chosen them."""
    for name in () if isinstance(candidate, str) else candidate:
        if not name or name.startswith("/") or "\0" in name or ".." in name.split("/"):
            raise BadPath(f"{name[:60]!r} is not a path below the working directory")


def candidate_failure(reason: str) -> GradeResult:
    """The candidate cannot even be asked, and that is its own doing."""
    return GradeResult(reward=0.0, status="candidate_error", reason=reason)


def lost_sandbox(reason: str) -> GradeResult:
    """The candidate's sandbox ended while the candidate ran: ours to look into, unless it happens every time."""
    return replace(infra_failure(f"the candidate's sandbox was lost: {reason}"), sandbox={_LOST: True})


def is_lost(result: GradeResult) -> bool:
    """Whether it is a `lost_sandbox`."""
    return result.reward is None and _LOST in result.sandbox


def about_box(result: GradeResult, box: Box, *, end: ProgramEnd | None = None, **timings: float) -> GradeResult:
    """A result with what is known of the sandbox that the candidate ran in."""
    facts: dict[str, Any] = {"isolation": box.isolation, "warm_hit": box.warm_hit}
    if box.fork_time_ms:  # not known of a sandbox that nobody waited for
        facts["fork_time_ms"] = round(box.fork_time_ms, 3)
    if end is not None:
        facts["stdout"] = _tail(end.stdout)
        facts["stderr"] = _tail(end.stderr)
    return replace(result, sandbox={**result.sandbox, **facts}, timings={**result.timings, **timings})


def _tail(data: bytes) -> str:
    return data[-_OUTPUT_TAIL:].decode("utf-8", "replace")
