"""An exec request as the frame an agent gets, and how long to wait for its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hotbed.errors import SandboxFailed
from hotbed.guest.credit import WINDOW
from hotbed.guest.frames import FrameError, Header
from hotbed.runtime.base import Ahead, ExecOutcome, ExecRequest, Limits
from hotbed.runtime.replay.client import Report

_SLACK_S = 10.0
_BYTES_PER_S = 10 << 20
HANDED_OVER = 32 << 10  # well below what `guest/agent/spare.py` takes


def to_frame(
    request: ExecRequest, name: str, limits: Limits, *, stream: bool, environ: Mapping[str, str] = {}
) -> tuple[Header, bytes]:
    """The header and body; `environ` is what its sandbox has for whatever is run in it."""
    kept = limits.output_bytes if request.output_bytes is None else min(request.output_bytes, limits.output_bytes)
    header: dict[str, Any] = {
        "op": "exec",
        "id": name,
        "kind": request.kind,
        "program": len(request.program),
        "stdin": len(request.stdin),
        "cwd": request.cwd,
        "timeout_s": request.timeout_s,
        "output_bytes": kept,
        "output_kill_bytes": request.output_kill_bytes or limits.output_kill_bytes,
        "stream": stream,
    }
    if stream or request.stdin_open or request.terminal is not None:
        header.update(window=WINDOW, stdin_open=request.stdin_open, terminal=request.terminal)
    if request.kind == "commands":
        header.update(argv=[list(argv) for argv in request.argv], keep_going=request.keep_going)
    if request.seed is not None:
        header["pin"] = request.determinism
    if request.last:
        header["last"] = True
    if request.args or request.env or environ:
        header.update(args=list(request.args), env={**environ, **request.env})
    if not request.files:
        return header, request.program + request.stdin if request.stdin else request.program
    header["files"] = [[path, len(data), mode] for path, data, mode in request.files]
    return header, b"".join((request.program, *(data for _, data, _ in request.files), request.stdin))


def ahead_for(request: ExecRequest) -> Ahead | None:
    """What can have been pinned ahead of it, at level `rng` only.

    What starts one command; or the interpreter that waits, for code that it can be handed at once.
    """
    if request.determinism != "rng":
        return None
    if request.kind != "code":
        return "command" if len(request.argv) <= 1 else None
    carried = len(request.program) + sum(map(len, request.args))
    carried += sum(len(name) + len(value) for name, value in request.env.items())
    waits = request.stdin or request.stdin_open
    return "code" if not waits and carried < HANDED_OVER else None


def patience_s(request: ExecRequest) -> float:
    """How long the node waits: the exec's own limit, and time to carry its bytes and to clean up."""
    carried = len(request.program) + len(request.stdin) + sum(len(data) for _, data, _ in request.files)
    return request.timeout_s + _SLACK_S + carried / _BYTES_PER_S


def stream_of(header: Header) -> int:
    """Which stream a piece of output belongs to. Raises `FrameError`."""
    fd = header.get("fd")
    if fd not in (1, 2):
        raise FrameError("output of no known stream")
    return int(fd)


def with_pins(outcome: ExecOutcome, report: Report, *, hostname: str) -> ExecOutcome:
    """An outcome with what is known about its pins. Raises `SandboxFailed` if it ran and was not verified."""
    if report.ack != "verified" and outcome.status in ("ok", "exit"):
        raise SandboxFailed("what ran could not be pinned")
    return replace(outcome, seed_ack=report.ack, pinned=pinned_by(report, hostname=hostname))


def pinned_by(report: Report, *, hostname: str) -> tuple[str, ...]:
    """What was pinned for what ran in a sandbox of that name."""
    fixed = ("hostname",) if hostname == "sandbox" and report.pinned else ()
    return (*report.pinned, *fixed)


def lost_to_memory() -> ExecOutcome:
    """The outcome of an exec whose sandbox the kernel killed for memory, agent and all."""
    return ExecOutcome(status="oom", exit_code=None, signal=9)
