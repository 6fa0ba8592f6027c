"""Files of candidates and specs, as `hotbed grade` reads and writes them.

A candidate is one line of JSON with one of `code`, `completion` (a model's whole answer, of which the code is taken)
and `files` (text by name), and any of `id`, `group`, `seed`. A line that is none is the caller's mistake and is named.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotbed.errors import InvalidRequest, InvalidSpec
from hotbed.grading import GradeResult, Spec, extract, from_wire
from hotbed.wire.checks import seed_text

_FORMS = ("code", "completion", "files")
_KNOWN = {*_FORMS, "id", "group", "seed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One line: what is graded, and what it is called. `reason` says why a completion holds no code."""

    id: str
    group: str
    code: str | dict[str, str]
    seed: str | None = None
    reason: str = ""


def read_spec(path: str) -> Spec:
    """The spec in a JSON file. Raises `InvalidSpec`."""
    try:
        return from_wire(json.loads(read_text(path)))
    except json.JSONDecodeError as error:
        raise InvalidSpec(f"{path} is not JSON: {error}") from None


def read_text(path: str) -> str:
    """The text of a file that the user named."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as reason:
        raise InvalidRequest(f"{path} cannot be read: {reason.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is not UTF-8 text") from None


def read_candidates(path: str, entry: str) -> list[Candidate]:
    """The candidates of a jsonl file, in order. Only a newline ends a line: text may hold U+2028 and its like."""
    found: list[Candidate] = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            try:
                found.append(_candidate(json.loads(line), len(found), entry))
            except (ValueError, InvalidRequest) as error:
                raise InvalidRequest(f"{path}, line {number}: {error}") from None
    if not found:
        raise InvalidRequest(f"{path} holds no candidate", hint='one JSON object a line: {"id": "a", "code": "..."}')
    return found


def _candidate(data: object, index: int, entry: str) -> Candidate:
    if not isinstance(data, Mapping):
        raise InvalidRequest(f"a candidate is a JSON object, not a {type(data).__name__}")
    unknown = sorted(set(data) - _KNOWN)
    forms = [name for name in _FORMS if name in data]
    if unknown or len(forms) != 1:
        raise InvalidRequest(f"{unknown[0]!r} is not known" if unknown else f"needs one of {', '.join(_FORMS)}")
    code, reason = _code(forms[0], data[forms[0]], entry)
    seed = data.get("seed")
    name = str(data.get("id", index))
    group = str(data.get("group", name))
    return Candidate(id=name, group=group, code=code, reason=reason, seed=None if seed is None else seed_text(seed))


def _code(form: str, value: object, entry: str) -> tuple[str | dict[str, str], str]:
    if form == "files":
        if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
            raise InvalidRequest("files maps names to text")
        return dict(value), ""
    if not isinstance(value, str):
        raise InvalidRequest(f"{form} must be text, not {type(value).__name__}")
    if form == "code":
        return value, ""
    found = extract(value, entry=entry.split(".")[0] or None)
    return (found.code, "") if found.code is not None else ("", found.reason or "there is no code in it")


def as_line(candidate: Candidate, result: GradeResult) -> dict[str, Any]:
    """A verdict as a line of output: `id` is the candidate's own, `grade_id` what `hotbed replay` takes."""
    reason = f"no code: {candidate.reason}" if candidate.reason and result.reward == 0.0 else result.reason
    verdict = result.to_wire()
    grade_id = verdict.pop("id", None)
    return {"id": candidate.id, "group": candidate.group, **verdict, "reason": reason, "grade_id": grade_id}


def summary(candidates: Sequence[Candidate], results: Sequence[GradeResult]) -> dict[str, Any]:
    """Counts, the mean reward of what has one, and pass@k where several candidates share a group."""
    rewards = [result.reward for result in results if result.reward is not None]
    groups: dict[str, list[GradeResult]] = defaultdict(list)
    for candidate, result in zip(candidates, results, strict=True):
        if result.reward is not None:
            groups[candidate.group].append(result)
    return {
        "candidates": len(results),
        "statuses": dict(Counter(result.status for result in results)),
        "mean_reward": round(sum(rewards) / len(rewards), 6) if rewards else None,
        "invalid": len(results) - len(rewards),
        "beside": sum(result.trust == "beside" for result in results),
        "suspected_tamper": sum(result.suspected_tamper for result in results),
        "pass_at": _pass_at(list(groups.values())),
    }


def _pass_at(groups: Sequence[Sequence[GradeResult]]) -> dict[str, float]:
    """pass@k, by the unbiased estimator, for every power of two that each group has candidates for."""
    counts = [(len(group), sum(result.ok for result in group)) for group in groups]
    most = min((n for n, _ in counts), default=0)
    if max((n for n, _ in counts), default=0) < 2:
        return {}
    ks = [k for k in (1, 2, 4, 8, 16, 32, 64, 128) if k <= most]
    return {str(k): round(_mean(pass_at_k(n, c, k) for n, c in counts), 6) for k in ks}


def pass_at_k(n: int, passed: int, k: int) -> float:
    """The chance that at least one of `k` drawn out of `n`, of which so many passed, has passed."""
    missed = 1.0
    for drawn in range(k):
        missed *= max(0, n - passed - drawn) / (n - drawn)
    return 1.0 - missed


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
