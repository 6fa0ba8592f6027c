"""What a run gave."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hotbed.wire.codec import from_wire
from hotbed.wire.execs import ExecResponse

_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result(ExecResponse):
    """How one run ended and what it printed. A program that fails is a result, never an exception.

    `status` is ok, exit, timeout, oom, pids, disk, output or signal; `exit_code` is -1 when the run was killed.
    `stdout` and `stderr` are text (what is not UTF-8 is replaced; `stdout_bytes` and `stderr_bytes` are exact), each
    cut to its head and tail when `truncated`. `seed_ack` says what became of the seed: "off" means that nothing was
    pinned.
    """

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
    result = from_wire(Result, data)
    if result.stdout_b64 is not None:
        result = replace(result, stdout=result.stdout_b64.decode("utf-8", "replace"))
    if result.stderr_b64 is not None:
        result = replace(result, stderr=result.stderr_b64.decode("utf-8", "replace"))
    return result


def _short(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
