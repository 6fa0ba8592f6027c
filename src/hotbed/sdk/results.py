"""What a run gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotbed.wire.codec import from_wire
from hotbed.wire.execs import ExecResponse

_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one run ended and what it printed. A program that fails is a result, never an exception.

    `status` is ok, exit, timeout, oom, pids, disk, output or signal; `exit_code` is -1 when the run was killed.
    `stdout` and `stderr` are text (what is not UTF-8 is replaced; `stdout_bytes` and `stderr_bytes` are exact), each
    cut to its head and tail when `truncated`. `seed_ack` says what became of the seed: "off" means that
    nothing was pinned.
    """

    id: str
    status: str
    exit_code: int
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    stdout_total: int = 0
    stderr_total: int = 0
    seed: str = ""
    seed_ack: str = "off"
    pinned: tuple[str, ...] = ()
    fork_time_ms: float = 0.0
    exec_time_ms: float = 0.0
    total_time_ms: float = 0.0
    cpu_ms: float = 0.0
    maxrss_kib: int = 0
    warm_hit: bool = False
    isolation: str = ""
    template: str = ""
    template_digest: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()
    order: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    raw_stdout: bytes | None = field(default=None, repr=False)
    raw_stderr: bytes | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """Whether it ran to its end and exited with 0."""
        return self.status == "ok"

    @property
    def stdout_bytes(self) -> bytes:
        """Standard output exactly as written."""
        return self.stdout.encode("utf-8", "surrogateescape") if self.raw_stdout is None else self.raw_stdout

    @property
    def stderr_bytes(self) -> bytes:
        """Standard error exactly as written."""
        return self.stderr.encode("utf-8", "surrogateescape") if self.raw_stderr is None else self.raw_stderr

    @property
    def output(self) -> str:
        """Both streams, merged in the order in which they were written."""
        streams = {1: self.stdout_bytes, 2: self.stderr_bytes}
        taken = {1: 0, 2: 0}
        pieces = []
        for stream, length in self.order or ((1, len(streams[1])), (2, len(streams[2]))):
            start = taken[stream]
            taken[stream] = start + length
            pieces.append(streams[stream][start : start + length])
        return b"".join(pieces).decode("utf-8", "replace")

    def __repr__(self) -> str:
        parts = [f"status={self.status!r}", f"exit_code={self.exit_code}"]
        if self.signal is not None:
            parts.append(f"signal={self.signal}")
        parts += [f"{name}={_short(text)}" for name, text in (("stdout", self.stdout), ("stderr", self.stderr)) if text]
        if self.truncated:
            parts.append("truncated=True")
        parts.append(f"total_time_ms={self.total_time_ms:.2f}")
        parts.append(f"isolation={self.isolation!r}")
        return f"Result({', '.join(parts)})"


def result_from_wire(data: object) -> Result:
    """The result that an answer's JSON object stands for."""
    response = from_wire(ExecResponse, data)
    values = {name: getattr(response, name) for name in _SAME}
    if response.stdout_b64 is not None:
        values["stdout"] = response.stdout_b64.decode("utf-8", "replace")
    if response.stderr_b64 is not None:
        values["stderr"] = response.stderr_b64.decode("utf-8", "replace")
    return Result(**values, raw_stdout=response.stdout_b64, raw_stderr=response.stderr_b64)


_SAME = tuple(name for name in Result.__dataclass_fields__ if not name.startswith("raw_"))


def _short(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
