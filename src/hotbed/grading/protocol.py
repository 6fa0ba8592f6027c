"""How a node has a group of candidates judged, as values: which programs to start, which frames to exchange.

For one group of siblings with one sealed spec the node

1. forks one sandbox per candidate, fresh, and starts the guest program `candidate` in it (`program_config`);
2. forks one sandbox for the judge and starts the guest program `judge` in it (same config), from a template that
need
   not be the candidates'; these templates may be shared, for neither holds anything of a spec;
3. connects each candidate's channel to the judge directly: the candidate gets one end of an AF_UNIX SOCK_STREAM
   socketpair, the other ends go with the job frame (`job_frame`) over the judge's own channel, in order;
4. answers {"op":"usage"} frames (`usage_frame`) and takes one {"op":"verdict"} per candidate (`read_verdict`), after
   which that candidate's sandbox can be killed at once; {"op":"done"} ends the job.

If the judge's channel closes first, or `deadline_s` passes, the candidates without a verdict have `infra_failure`: the
judge supervises its workers, so this is never a candidate's doing. The frames are in `guest/judging/judge.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hotbed.errors import InvalidSpec, ProtocolError
from hotbed.grading.outputs import RunOutcome
from hotbed.grading.programs import StdioReward
from hotbed.grading.specs import PropertyReward, UnitTestReward
from hotbed.grading.verdicts import GradeResult, result_of

GROUP_LIMIT = 250  # descriptors in one frame: SCM_MAX_FD is 253

Sealed = UnitTestReward | PropertyReward


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateCode:
    """What a candidate submitted: the code of the module under test, and any further files beside it."""

    code: str
    files: Mapping[str, str] = field(default_factory=dict)


def program_config(lane: int | None = None, cpus: Sequence[int] = ()) -> dict[str, Any]:
    """The config of both programs. With a lane, a group shares one CPU, which about halves the cost of a call.

    Not for candidates that are to use several CPUs.
    """
    return {} if lane is None or not cpus else {"cpu": cpus[lane % len(cpus)]}


def candidate_of(value: str | Mapping[str, str] | CandidateCode, spec: Sealed) -> CandidateCode:
    """A candidate as users give it: code, or files of which one is the module under test."""
    if isinstance(value, CandidateCode):
        return value
    if isinstance(value, str):
        return CandidateCode(code=value)
    name = f"{spec.module}.py"
    if name not in value:
        raise InvalidSpec(f"the candidate's files lack {name}", hint="set the spec's `module`")
    return CandidateCode(code=value[name], files={path: text for path, text in value.items() if path != name})


def judge_spec(spec: Sealed, seed: str) -> dict[str, Any]:
    """The spec as the judge reads it. `seed` is the group's: the judge's draws are the same for every sibling."""
    limits = spec.limits
    return {
        **spec.judge_fields(),
        "entry": spec.entry,
        "module": spec.module,
        "prelude": spec.prelude,
        "compare": spec.compare.to_wire(),
        "partial": bool(spec.partial),
        "seed": spec.seed or seed,
        "cpu_s": limits.cpu_s,
        "wall_s": limits.call_wall_s,
        "total_s": limits.candidate_wall_s,
        "reply_bytes": limits.reply_bytes,
    }


def job_frame(
    job_id: str, spec: Sealed, candidates: Sequence[CandidateCode], seed: str, *, cpu: int | None = None
) -> tuple[dict[str, Any], bytes]:
    """Header and body of the job; the candidates' sockets go with it, in the same order. `cpu` is theirs, too."""
    if not 0 < len(candidates) <= GROUP_LIMIT:
        raise InvalidSpec(f"a group has 1 to {GROUP_LIMIT} candidates, not {len(candidates)}")
    parts = [json.dumps(judge_spec(spec, seed)).encode()]
    codes = []
    for candidate in candidates:
        code = candidate.code.encode("utf-8", "surrogatepass")
        files = [(path, text.encode("utf-8", "surrogatepass")) for path, text in candidate.files.items()]
        parts += [code, *(data for _, data in files)]
        codes.append([len(code), [[path, len(data)] for path, data in files]])
    header = {"op": "judge", "id": job_id, "total_s": spec.limits.candidate_wall_s, "spec": len(parts[0])}
    if cpu is not None:
        header["cpu"] = cpu
    return {**header, "codes": codes}, b"".join(parts)


def deadline_s(spec: Sealed, candidates: int) -> float:
    """After this long a judge that says nothing is broken. Hanging candidates are judged side by side."""
    return 2 * spec.limits.candidate_wall_s + 0.5 * candidates + 30.0


def usage_index(header: Mapping[str, Any], candidates: int) -> int:
    """Which candidate a usage question is about. Raises `ProtocolError`."""
    index = header.get("index")
    if type(index) is not int or not 0 <= index < candidates or not isinstance(header.get("id"), str):
        raise ProtocolError("the judge asked a question that is none")
    return index


def usage_frame(header: Mapping[str, Any], waited_s: float) -> dict[str, Any]:
    """The answer to a usage question: how long that sandbox was runnable without a CPU since it was last asked for."""
    return {"op": "usage", "id": header["id"], "index": header["index"], "waited_s": waited_s}


def check_frame(job_id: str, spec: StdioReward, outcomes: Sequence[RunOutcome]) -> tuple[dict[str, Any], bytes]:
    """The job that asks a spec's checker about a candidate's outputs; `read_checked` reads the answer."""
    parts = [spec.checker.encode("utf-8", "surrogatepass")]
    items = []
    for case, outcome in zip(spec.stdio_cases, outcomes, strict=True):
        item = [
            case.stdin.encode("utf-8", "surrogatepass"),
            outcome.stdout,
            case.stdout.encode("utf-8", "surrogatepass"),
        ]
        items.append([len(part) for part in item])
        parts += item
    wall_s = spec.limits.call_wall_s
    return {"op": "check", "id": job_id, "checker": len(parts[0]), "items": items, "wall_s": wall_s}, b"".join(parts)


def read_checked(header: Mapping[str, Any], cases: int) -> list[bool] | str:
    """The checker's answers, or why it cannot answer (`spec_failure`). Raises `ProtocolError`."""
    if header.get("op") == "checked" and isinstance(header.get("error"), str):
        return str(header["error"])
    answers = header.get("answers")
    if header.get("op") != "checked" or not isinstance(answers, list) or len(answers) != cases:
        raise ProtocolError("the judge sent a frame that is no answer of a checker")
    return [answer is True for answer in answers]


def read_verdict(header: Mapping[str, Any], spec: Sealed, candidates: int) -> tuple[int, GradeResult]:
    """(index, result) of a verdict frame. Raises `ProtocolError` for one that is not."""
    index = header.get("index")
    if header.get("op") != "verdict" or type(index) is not int or not 0 <= index < candidates:
        raise ProtocolError("the judge sent a frame that is no verdict")
    try:
        return index, result_of(header, partial=bool(spec.partial), weights=spec.weights)
    except (TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"the judge sent a verdict that cannot be read: {error}") from None
