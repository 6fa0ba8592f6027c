"""Grading a group of candidates in one request: what is asked, and the lines that come back as they are known.

The answer is ndjson: one `GradeLine` per candidate, in the order in which they finish, then one `GradeDone`; or, if
grading as a whole failed on our side, an `ErrorEvent` last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hotbed.wire.checks import require, require_level, require_positive, require_seed
from hotbed.wire.execs import Determinism, Isolation

BATCH_LIMIT = 4096
GROUP_ID_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeRequest:
    """Candidates (code, or files by name) and the spec they are graded by.

    `seeds` has one seed per candidate, or None for a fresh one. `concurrency` is how many candidates are alive at once.
    After `deadline_s` what has no verdict is invalid, not zero. A request with the `group_id` of one that was made
    before, and is otherwise equal, gets that one's results: nothing is graded twice.
    """

    spec: Mapping[str, Any]
    codes: tuple[str | dict[str, str], ...]
    seeds: tuple[str | None, ...] = ()
    determinism: Determinism | None = None
    concurrency: int | None = None
    deadline_s: float | None = None
    group_id: str = ""
    label: str | None = None
    min_isolation: Isolation | None = None

    def __post_init__(self) -> None:
        require(len(self.codes) <= BATCH_LIMIT, f"{len(self.codes)} candidates; at most {BATCH_LIMIT} in one request")
        require(
            not self.seeds or len(self.seeds) == len(self.codes),
            f"{len(self.seeds)} seeds for {len(self.codes)} candidates",
            "give one per candidate, or none",
        )
        for seed in self.seeds:
            require_seed(seed)
        require_level(self.determinism)
        require(self.concurrency is None or self.concurrency >= 1, "concurrency must be at least 1")
        require_positive("deadline_s", self.deadline_s)
        require(len(self.group_id) <= GROUP_ID_LIMIT, f"group_id is longer than {GROUP_ID_LIMIT} characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeLine:
    """The verdict on one candidate: `result` is a `GradeResult` in its wire form."""

    index: int
    result: Mapping[str, Any]
    id: str = ""
    event: Literal["grade"] = "grade"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeDone:
    """Every candidate has its line."""

    group_id: str
    graded: int
    invalid: int
    retried: int = 0
    total_ms: float = 0.0
    statuses: Mapping[str, int] = field(default_factory=dict)
    event: Literal["done"] = "done"
