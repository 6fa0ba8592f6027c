"""Programs judged by their output: which runs a candidate needs, and the verdict on what they gave. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hotbed.grading.programs import OutputCompare, StdioCase, StdioReward
from hotbed.grading.verdicts import Check, GradeResult, Outcome, Status, reward_of

_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One process to run for one case, in a sandbox that holds the candidate's code and nothing of the spec."""

    command: str
    files: tuple[tuple[str, bytes], ...]
    stdin: bytes
    timeout_s: float
    cpu_s: float
    memory_mib: int
    output_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What a run came to; `status` and `exit_code` as in `ExecOutcome`."""

    status: str
    exit_code: int | None
    stdout: bytes = b""
    truncated: bool = False


def runs_of(spec: StdioReward, code: str) -> list[Run]:
    """One run per case, each for a fresh process. `build` goes first, in the same sandbox."""
    limits = spec.limits
    return [
        Run(
            command=" ".join([spec.command, *map(_quoted, case.args)]),
            files=((spec.path, code.encode("utf-8", "surrogatepass")),),
            stdin=case.stdin.encode("utf-8", "surrogatepass"),
            timeout_s=limits.call_wall_s,
            cpu_s=limits.cpu_s,
            memory_mib=limits.memory_mib,
            output_bytes=limits.output_bytes,
        )
        for case in spec.stdio_cases
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def stdio_result(spec: StdioReward, outcomes: Sequence[RunOutcome], checked: Sequence[bool | None] = ()) -> GradeResult:
    """The result of a candidate's runs. `checked` holds the checker's answers where the spec has one."""
    checks: list[Check] = []
    statuses: list[Status] = []
    for index, (case, outcome) in enumerate(zip(spec.stdio_cases, outcomes, strict=True)):
        found, message = _judge(spec, case, outcome, checked[index] if checked else None)
        statuses.append(
            _STATUS.get(outcome.status, "candidate_error") if found not in ("passed", "failed") else "failed"
        )
        checks.append(Check(name=f"case {index}", outcome=found, message=message))
    passed = sum(check.outcome == "passed" for check in checks)
    worst: Status = next((s for s in statuses if s != "failed"), "failed")
    first = next((f"{check.name}: {check.message}" for check in checks if check.outcome != "passed"), "")
    outcomes_of = [check.outcome for check in checks]
    return GradeResult(
        reward=reward_of(outcomes_of, partial=spec.partial, weights=spec.weights),
        passed=passed,
        total=len(checks),
        checks=tuple(checks),
        status="ok" if passed == len(checks) else worst,
        reason=first,
    )


_STATUS: dict[str, Status] = {
    "exit": "candidate_error",
    "signal": "candidate_error",
    "timeout": "timeout",
    "oom": "oom",
    "output": "output_limit",
}


def _judge(spec: StdioReward, case: StdioCase, outcome: RunOutcome, checked: bool | None) -> tuple[Outcome, str]:
    if outcome.status == "timeout":
        return "timeout", "out of time"
    ended = outcome.status == "ok" or (outcome.status == "exit" and spec.any_exit)
    if not ended:
        return "error", f"{outcome.status} ({outcome.exit_code})"
    if outcome.truncated or len(outcome.stdout) > spec.limits.output_bytes:
        return "error", "more output than is kept"
    if spec.checker:
        return ("passed", "") if checked is True else ("failed", "the checker says no")
    right = same_output(outcome.stdout, case.stdout, spec.compare)
    return ("passed", "") if right else ("failed", "wrong output")


def same_output(stdout: bytes, expected: str, compare: OutputCompare) -> bool:
    """Whether an output is the expected one. Linear in both."""
    if compare.mode == "exact":
        return stdout == expected.encode("utf-8", "surrogatepass")
    lines, wanted = _lines(stdout.decode("utf-8", "replace")), _lines(expected)
    return len(lines) == len(wanted) and all(
        len(got) == len(want) and all(_same_token(a, b, compare) for a, b in zip(got, want, strict=True))
        for got, want in zip(lines, wanted, strict=True)
    )


def _lines(text: str) -> list[list[str]]:
    """Tokens line by line, without the empty lines at the end."""
    lines = [line.split() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_token(got: str, want: str, compare: OutputCompare) -> bool:
    if got == want:
        return True
    if not (compare.float_abs or compare.float_rel) or _INTEGER.fullmatch(want):
        return False
    if not _FLOAT.fullmatch(want) or not _FLOAT.fullmatch(got):
        return False
    a, b = float(got), float(want)
    if not math.isfinite(a) or not math.isfinite(b):
        return False
    return abs(a - b) <= max(compare.float_abs, compare.float_rel * abs(b))
