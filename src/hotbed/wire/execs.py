"""Running one thing: in a sandbox that exists, or in one forked for it and discarded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hotbed.wire.checks import require, require_egress, require_level, require_path, require_positive, require_seed

Determinism = Literal["none", "rng", "full"]
Isolation = Literal["fake", "process", "fork", "gvisor", "vm"]

DEFAULT_TIMEOUT_S = 60.0
TIMEOUT_LIMIT_S = 24 * 3600.0
CLOCK_LIMITS = {"epoch_ns": (0, (1 << 62) - 1), "step_ns": (1, 10**9)}  # until 2116; up to a second


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpec:
    """A file written before the run, exactly as given: text in `content`, any bytes in `content_b64`."""

    path: str
    content: str | None = None
    content_b64: bytes | None = None
    mode: int = 0o644

    def __post_init__(self) -> None:
        require_path(self.path)
        require(
            (self.content is None) != (self.content_b64 is None),
            f"files: {self.path} needs content or content_b64, and not both",
        )
        mode = self.mode if type(self.mode) is int else -1
        require(0 <= mode <= 0o7777, f"files: mode {self.mode!r} of {self.path} is not a file mode")

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return either_bytes(self.content, self.content_b64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecRequest:
    """Exactly one of `code` (the warm interpreter), `command` (sh -c) or `commands` (argument lists, in order).

    A `_b64` field carries bytes that are not UTF-8 and stands in for its sibling. `output_bytes` is what is kept of
    each stream, head and tail. `stream` asks for ndjson: output events as they happen, the response last. `clock` sets
    the virtual clock of determinism `full`: `epoch_ns`, where it begins, and `step_ns`, what each reading adds.
    """

    code: str | None = None
    code_b64: bytes | None = None
    command: str | None = None
    command_b64: bytes | None = None
    commands: tuple[tuple[str, ...], ...] | None = None
    args: tuple[str, ...] = ()
    files: tuple[FileSpec, ...] = ()
    stdin: str | None = None
    stdin_b64: bytes | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout_seconds: float = DEFAULT_TIMEOUT_S
    output_bytes: int | None = None
    keep_going: bool = False
    seed: str | None = None
    determinism: Determinism | None = None
    clock: Mapping[str, int] | None = None
    stream: bool = False

    def __post_init__(self) -> None:
        check_exec(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRequest(ExecRequest):
    """One exec in a sandbox forked for it and discarded after: `ExecRequest` plus what the fork needs."""

    template: str
    limits: Mapping[str, float] | None = None
    min_isolation: Isolation | None = None
    label: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    egress: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        require(self.template != "", "template is empty", "built-in templates: python, python-numpy")
        require_egress(self.egress)
        check_exec(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecResponse:
    """What happened. `exit_code` is -1 when the run was killed or timed out; `status` says which.

    `order` gives (stream, length) runs over the kept bytes in the order they arrived. Where a stream is not UTF-8, its
    text is empty and its `_b64` field holds the bytes: read `stdout_bytes` and `stderr_bytes` to have either. `egress`
    is what was tried on the network, None without one. `traceparent` is the trace that the request came with.
    """

    id: str
    status: str
    ok: bool
    exit_code: int
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    stdout_b64: bytes | None = None
    stderr_b64: bytes | None = None
    order: tuple[tuple[int, int], ...] = ()
    truncated: bool = False
    stdout_total: int = 0
    stderr_total: int = 0
    fork_time_ms: float = 0.0
    exec_time_ms: float = 0.0
    total_time_ms: float = 0.0
    cpu_ms: float = 0.0
    maxrss_kib: int = 0
    warm_hit: bool = False
    isolation: str = ""
    seed: str = ""
    seed_ack: str = "off"
    pinned: tuple[str, ...] = ()
    template: str = ""
    template_digest: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()
    egress: Mapping[str, Any] | None = None
    traceparent: str = ""

    @property
    def stdout_bytes(self) -> bytes:
        """Standard output, whatever its bytes."""
        return either_bytes(self.stdout, self.stdout_b64)

    @property
    def stderr_bytes(self) -> bytes:
        """Standard error, whatever its bytes."""
        return either_bytes(self.stderr, self.stderr_b64)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputEvent:
    """A line of a streamed exec: some output as it happened. The last line is `ResultEvent` or `ErrorEvent`."""

    fd: Literal[1, 2]
    data: str = ""
    data_b64: bytes | None = None
    event: Literal["output"] = "output"

    @property
    def data_bytes(self) -> bytes:
        """The bytes, text or not."""
        return either_bytes(self.data, self.data_b64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultEvent:
    """The last line of a streamed exec that ran."""

    result: ExecResponse
    event: Literal["result"] = "result"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent:
    """The last line of a streamed exec that we failed to run: an error body under `error`."""

    error: Mapping[str, Any]
    event: Literal["error"] = "error"


def check_exec(request: ExecRequest) -> None:
    """What holds for every exec, checked on both ends."""
    given = [
        name
        for name in ("code", "code_b64", "command", "command_b64", "commands")
        if getattr(request, name) is not None
    ]
    require(bool(given), "nothing to run", "give one of code, command or commands")
    require(len(given) == 1, f"{' and '.join(given)} were both given", "give one of code, command or commands")
    require(request.stdin is None or request.stdin_b64 is None, "stdin and stdin_b64 were both given")
    require(request.timeout_seconds is not None, "timeout_seconds must be a number above 0, not None")
    require_positive("timeout_seconds", request.timeout_seconds)
    require(
        request.timeout_seconds <= TIMEOUT_LIMIT_S,
        f"timeout_seconds must be at most {TIMEOUT_LIMIT_S:.0f}, not {request.timeout_seconds!r}",
    )
    require(request.output_bytes is None or request.output_bytes >= 0, "output_bytes must not be negative")
    require_seed(request.seed)
    require_level(request.determinism)
    _check_clock(request.clock)
    if request.cwd is not None:
        require_path(request.cwd)
    for name, value in request.env.items():
        require(
            name != "" and "=" not in name and "\0" not in name + value,
            f"env name {name[:64]!r} is not usable, or its value holds a NUL",
        )


def _check_clock(clock: Mapping[str, int] | None) -> None:
    require(clock is None or isinstance(clock, Mapping), f"clock must be its parts by name, not {clock!r:.64}")
    for name, value in (clock or {}).items():
        require(name in CLOCK_LIMITS, f"clock has no {name!r:.64}", f"its parts are {', '.join(CLOCK_LIMITS)}")
        least, most = CLOCK_LIMITS[name]
        require(
            type(value) is int and least <= value <= most,
            f"clock {name} must be an int from {least} to {most}, not {value!r:.64}",
            "both are nanoseconds",
        )


def either_bytes(text: str | None, data: bytes | None) -> bytes:
    """The bytes of a text field and its `_b64` sibling."""
    if data is not None:
        return data
    return text.encode("utf-8", "surrogateescape") if text else b""


def text_or_bytes(data: bytes) -> tuple[str, bytes | None]:
    """The two wire fields of some bytes: text where they are UTF-8, else base64."""
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return "", data
