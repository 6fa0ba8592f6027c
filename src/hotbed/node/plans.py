"""What a caller asked, for the runtime, and what happened, for the answer. Pure, but that answers name their trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotbed.egress.policy import Policy as EgressPolicy
from hotbed.errors import IsolationUnavailable
from hotbed.node import trace
from hotbed.node.seeding import level_of
from hotbed.node.templates import limits_of
from hotbed.runtime.base import Box, BoxRequest, Determinism, ExecOutcome, Kind, Template, TemplateSpec
from hotbed.runtime.base import ExecRequest as ExecPlan
from hotbed.runtime.execs import HANDED_OVER, ahead_for
from hotbed.wire.checks import fresh_seed
from hotbed.wire.execs import ExecRequest, ExecResponse, RolloutRequest, either_bytes, text_or_bytes
from hotbed.wire.sandboxes import CreateSandbox

LADDER = ("fake", "process", "fork", "gvisor", "vm")


def check_isolation(offered: str, wanted: str | None) -> None:
    """Refuse a request that wants more isolation than this node gives."""
    if wanted is not None and LADDER.index(offered) < LADDER.index(wanted):
        raise IsolationUnavailable(
            f"min_isolation is {wanted!r} and this node gives {offered!r}",
            hint="`hotbed doctor` says what this host allows and what is missing",
        )


def box_plan(
    spec: TemplateSpec,
    request: CreateSandbox | RolloutRequest,
    egress: EgressPolicy | None = None,
    first: ExecPlan | None = None,
) -> BoxRequest:
    """What to fork, and `first` is what will run in it. The request has been completed (see `seeding`)."""
    seed, level = _pinned(request)
    return BoxRequest(
        limits=limits_of(spec.limits, request.limits) if request.limits else None,
        seed=seed,
        determinism=level,
        use_spare=seed is None or (isinstance(request, ExecRequest) and _suits_spare(spec, request)),
        ahead=None if first is None else ahead_for(first),
        egress=egress,
    )


def _pinned(request: CreateSandbox | ExecRequest) -> tuple[bytes | None, Determinism]:
    level = level_of(request)
    return (None, "none") if level == "none" else (bytes.fromhex(request.seed or ""), level)


def _suits_spare(spec: TemplateSpec, request: ExecRequest) -> bool:
    """Whether a pinned request has the same process number beside a spare: commands have, and what the spare runs.

    A waiting interpreter has as many threads, and their numbers, as it likes.
    """
    if spec.interpreter is not None:
        return False
    kind, program = program_of(request)
    return kind != "code" or (not request.stdin and not request.stdin_b64 and len(program) < HANDED_OVER)


def seed_of(request: CreateSandbox | ExecRequest) -> str:
    """The seed to use: the one given, or a fresh one."""
    return request.seed.lower() if request.seed is not None else fresh_seed()


def exec_plan(request: ExecRequest, *, last: bool = False) -> ExecPlan:
    """What to run; `last` if nothing else will be. The request has been completed (see `seeding`)."""
    kind, program = program_of(request)
    seed, level = _pinned(request)
    return ExecPlan(
        kind=kind,
        program=program,
        argv=request.commands or (),
        args=request.args,
        files=tuple((item.path, item.data, item.mode) for item in request.files),
        stdin=either_bytes(request.stdin, request.stdin_b64),
        env=request.env,
        cwd=request.cwd,
        timeout_s=request.timeout_seconds,
        output_bytes=request.output_bytes,
        keep_going=request.keep_going,
        seed=seed,
        determinism=level,
        clock=clock_of(request.clock),
        last=last,
    )


def clock_of(given: Mapping[str, int] | None) -> tuple[int | None, int | None]:
    """Epoch and step of the virtual clock, where they are not the usual ones."""
    return (None, None) if given is None else (given.get("epoch_ns"), given.get("step_ns"))


def program_of(request: ExecRequest) -> tuple[Kind, bytes]:
    """Which of the three it is, and its text. The request has been checked to hold exactly one."""
    if request.commands is not None:
        return "commands", b""
    if request.command is not None or request.command_b64 is not None:
        return "command", either_bytes(request.command, request.command_b64)
    return "code", either_bytes(request.code, request.code_b64)


def response(
    outcome: ExecOutcome,
    *,
    exec_id: str,
    box: Box,
    template: Template,
    seed: str,
    total_ms: float,
    egress: Mapping[str, Any] | None = None,
) -> ExecResponse:
    """The answer to an exec."""
    return ExecResponse(
        id=exec_id,
        status=outcome.status,
        ok=outcome.status == "ok",
        exit_code=-1 if outcome.exit_code is None else outcome.exit_code,
        signal=outcome.signal,
        **printed(outcome),
        fork_time_ms=round(box.fork_time_ms, 3),
        exec_time_ms=exec_ms(outcome),
        total_time_ms=round(total_ms, 3),
        cpu_ms=outcome.cpu_us / 1e3,
        maxrss_kib=outcome.maxrss_kib,
        warm_hit=box.warm_hit and outcome.waited,
        isolation=box.isolation,
        seed=seed,
        seed_ack=outcome.seed_ack,
        pinned=outcome.pinned,
        template=template.spec.name,
        template_digest=template.digest,
        steps=outcome.steps,
        egress=egress,
        traceparent=trace.CURRENT.get(),
    )


def printed(outcome: ExecOutcome) -> dict[str, Any]:
    """The fields of an answer that tell of output."""
    stdout, stdout_b64 = text_or_bytes(outcome.stdout)
    stderr, stderr_b64 = text_or_bytes(outcome.stderr)
    return {
        "stdout": stdout,
        "stderr": stderr,
        "stdout_b64": stdout_b64,
        "stderr_b64": stderr_b64,
        "order": outcome.order,
        "truncated": outcome.truncated,
        "stdout_total": outcome.stdout_total,
        "stderr_total": outcome.stderr_total,
    }


def exec_ms(outcome: ExecOutcome) -> float:
    """How long it ran, by the sandbox's own clock."""
    return max(0, outcome.end_ns - outcome.start_ns) // 1000 / 1e3
