"""From what was seen to a reward: pure functions, and the result that users get.

Three outcomes are kept apart. A *score*: checks were judged. The *candidate's failure*: it does not load, crashes, runs
out of time or memory, breaks the protocol; reward 0.0 with a reason. *Invalid*: the spec is broken or we failed; reward
None, always and only then. Nothing that a candidate prints, returns or dies of selects the third.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Status = Literal["ok", "failed", "candidate_error", "timeout", "oom", "output_limit", "spec_error", "infra_error"]
Trust = Literal["isolated", "beside"]
Outcome = Literal["passed", "failed", "error", "timeout", "skipped", "not_run"]

INVALID: tuple[Status, ...] = ("spec_error", "infra_error")
_JUDGED: tuple[Status, ...] = ("ok", "failed", "candidate_error", "timeout", "spec_error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One official check. The message may quote what was expected: it is for the trainer, not for the policy."""

    name: str
    outcome: Outcome
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeResult:
    """What grading one candidate came to. `reward` is None exactly when it is not the candidate's doing.

    `pinned` lists what its seed pinned for each of its processes. `id` is its name in the node's ledger, by which it
    can be replayed; it has one once a node has told it.
    """

    reward: float | None
    passed: int = 0
    total: int = 0
    checks: tuple[Check, ...] = ()
    status: Status = "ok"
    reason: str = ""
    trust: Trust = "isolated"
    trust_reason: str = ""
    suspected_tamper: bool = False
    seed: str | None = None
    seed_ack: str = "off"
    pinned: tuple[str, ...] = ()
    calls: int = 0
    timings: Mapping[str, float] = field(default_factory=dict)
    sandbox: Mapping[str, Any] = field(default_factory=dict)
    id: str = field(default="", compare=False)

    @property
    def ok(self) -> bool:
        """Whether every official check passed."""
        return self.status == "ok"

    def to_wire(self) -> dict[str, Any]:
        """The JSON object."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        if not self.id:
            del found["id"]
        found["checks"] = [[check.name, check.outcome, check.message] for check in self.checks]
        return {**found, "pinned": list(self.pinned), "timings": dict(self.timings), "sandbox": dict(self.sandbox)}

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> GradeResult:
        """The result of a JSON object; fields of a newer node are ignored."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        checks = tuple(Check(name=n, outcome=o, message=m) for n, o, m in known.pop("checks", ()))
        pinned = tuple(known.pop("pinned", ()))
        return cls(checks=checks, pinned=pinned, **known)


def reward_of(outcomes: Sequence[Outcome], *, partial: bool, weights: Sequence[float] = ()) -> float:
    """The share of the weight that passed, or, unless `partial`, 1.0 for all of it and 0.0 otherwise."""
    if not outcomes:
        return 0.0
    each = list(weights) if len(weights) == len(outcomes) else [1.0] * len(outcomes)
    if all(outcome == "passed" for outcome in outcomes):
        return 1.0
    earned = sum(weight for weight, outcome in zip(each, outcomes, strict=True) if outcome == "passed")
    return earned / sum(each) if partial else 0.0


def result_of(verdict: Mapping[str, Any], *, partial: bool, weights: Sequence[float] = ()) -> GradeResult:
    """The result of a judge's verdict frame. The judge runs the user's tests, so its frame is checked, too."""
    status = verdict.get("status")
    if status == "lost":
        return infra_failure(str(verdict.get("reason", "")))
    if status not in _JUDGED:
        return infra_failure(f"the judge answered status {status!r}")
    checks = tuple(Check(name=str(n), outcome=o, message=str(m)) for n, o, m in verdict.get("checks", ()))
    unsealed = "; ".join(verdict.get("unsealed", ()))
    if status == "spec_error":
        return GradeResult(reward=None, status=status, reason=str(verdict.get("reason", "")))
    reward = reward_of([check.outcome for check in checks], partial=partial, weights=weights)
    if not partial and status != "ok":
        reward = 0.0
    return GradeResult(
        reward=reward,
        passed=sum(check.outcome == "passed" for check in checks),
        total=len(checks),
        checks=checks,
        status=status,
        reason=str(verdict.get("reason", "")),
        trust="beside" if unsealed else "isolated",
        trust_reason=unsealed,
        suspected_tamper=bool(verdict.get("tampered")),
        calls=int(verdict.get("calls", 0)),
        timings={"judge_s": float(verdict.get("seconds", 0.0))},
    )


def settle(result: GradeResult, ended: str, *, signal: int | None = None) -> GradeResult:
    """Name the candidate's failure by how its process ended (`ProgramEnd.status`). Never changes a reward.

    A candidate that passed, or that failed a check in the ordinary way, ended because it was not needed any more.
    """
    if result.status not in ("candidate_error", "failed", "timeout"):
        return result
    if ended == "oom":
        return replace(result, status="oom", reason="the candidate ran out of memory")
    if ended == "timeout" or signal in _CPU_SIGNALS:
        return replace(result, status="timeout", reason=result.reason or "the candidate used up its CPU time")
    return result


_CPU_SIGNALS = (24, 27)  # SIGXCPU, SIGPROF


def infra_failure(reason: str) -> GradeResult:
    """We failed: no reward was formed, and the candidate may be graded again."""
    return GradeResult(reward=None, status="infra_error", reason=reason)


def spec_failure(reason: str) -> GradeResult:
    """The spec cannot be graded: no reward was formed, and trying again will not help."""
    return GradeResult(reward=None, status="spec_error", reason=reason)


def is_invalid(result: GradeResult) -> bool:
    """Whether there is no verdict."""
    return result.status in INVALID
