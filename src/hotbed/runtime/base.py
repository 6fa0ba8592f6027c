"""The contract of a backend: what it means to keep a template warm, to fork a sandbox, and to run something in it.

A `Backend` makes `Template`s; a template forks `Box`es; a box runs execs and programs until it is killed. Values cross
this border as frozen dataclasses; nothing here does I/O. Every backend passes the one conformance suite
(tests/conformance), the fake included.
"""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol

from hotbed.egress.policy import Policy
from hotbed.errors import InvalidRequest
from hotbed.runtime.layering import Layer
from hotbed.runtime.running import OnStart
from hotbed.runtime.standing import Interpreter, Start

Status = Literal["ok", "exit", "timeout", "oom", "pids", "disk", "output", "signal"]
Kind = Literal["code", "command", "commands"]
Ahead = Literal["code", "command"]
Network = Literal["none", "own"]
Determinism = Literal["none", "rng", "full"]

HOST_IMAGE = "host"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
ARGUMENT_LIMIT = 128 << 10  # MAX_ARG_STRLEN, include/uapi/linux/binfmts.h
ARGUMENTS_LIMIT = (8 << 20) // 4 - (64 << 10)  # a quarter of the stack, and room for what each exec has anyway
EXEC_TIMEOUT_LIMIT_S = 24 * 3600.0


def require(condition: bool, message: str, hint: str | None = None) -> None:
    """Raise `InvalidRequest` unless the condition holds."""
    if not condition:
        raise InvalidRequest(message, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one sandbox may use. `output_bytes` is kept per stream, head and tail; the rest is counted and dropped."""

    cpus: float = 1.0
    memory_mib: int = 1024
    pids: int = 256
    disk_mib: int = 512
    files: int = 100_000
    open_files: int = 1024
    output_bytes: int = 16 << 20
    output_kill_bytes: int = 8 << 30

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            require(
                number and math.isfinite(value) and value > 0,
                f"limits.{item.name} must be a number above 0, not {value!r}",
            )
            require(
                item.name == "cpus" or isinstance(value, int),
                f"limits.{item.name} must be a whole number, not {value!r}",
            )
        require(
            self.disk_mib < self.memory_mib,
            f"limits.disk_mib ({self.disk_mib}) must stay below limits.memory_mib ({self.memory_mib})",
            "the sandbox's disk lives in memory (tmpfs) and is counted as its memory",
        )

    def with_changes(self, changes: Mapping[str, Any]) -> Limits:
        """These limits with some replaced; an unknown name is refused."""
        known = {item.name for item in fields(self)}
        unknown = sorted(set(changes) - known)
        require(not unknown, f"unknown limit {', '.join(unknown)}", f"known limits: {', '.join(sorted(known))}")
        return replace(self, **dict(changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSpec:
    """Everything that makes a template what it is. Two equal specs are the same template.

    `image` is "host" (this host's Python seen read-only) or the digest of an unpacked image. `preload` are modules that
    the warm interpreter has imported. `programs` are guest programs the interpreter has imported besides the agent.
    `mounts` are (host path, path inside) pairs seen read-only. `parks` says whether sandboxes are forked ahead of
    requests. `start` is what each sandbox starts, and waits for, before it is handed out. `interpreter` runs `code`.
    """

    name: str
    image: str = HOST_IMAGE
    preload: tuple[str, ...] = ()
    programs: tuple[str, ...] = ("candidate", "judge")
    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    limits: Limits = field(default_factory=Limits)
    parks: bool = True
    start: Start | None = None
    interpreter: Interpreter | None = None

    def __post_init__(self) -> None:
        require(bool(_NAME.fullmatch(self.name)), f"template name {self.name!r} is not a-z 0-9 . _ - (63 at most)")
        for module in self.preload:
            parts = module.split(".")
            require(all(part.isidentifier() for part in parts), f"preload {module!r} is not a module name")
        for name, value in self.env:
            require(name != "" and "=" not in name and "\0" not in name + value, f"env name {name!r} is not usable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Solo:
    """A guest program that is to be its sandbox's only process, and the end of the channel that it gets."""

    program: str
    config: Mapping[str, Any]
    channel: socket.socket


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxRequest:
    """One fork of a template. `seed` (32 bytes) pins the programs started in it; an exec brings a seed of its own.

    A `forkable` one can be copied while an environment runs in it; a `vessel` is one that a copy will be put into. A
    `solo` one is half as large: there is no agent, nothing can be asked of it but its end, and the box is a `Program`.
    With a `layer` it starts with the files that another sandbox had. Without `egress` it has no network at all. What
    runs in it first is of the kind `ahead`, for which something may have been pinned there (see `execs.ahead_for`).
    """

    limits: Limits | None = None
    hostname: str = "sandbox"
    network: Network = "own"
    seed: bytes | None = None
    determinism: Determinism = "none"
    use_spare: bool = True
    ahead: Ahead | None = None
    forkable: bool = False
    vessel: bool = False
    solo: Solo | None = None
    layer: Layer | None = None
    egress: Policy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecRequest:
    """One thing to run. `code` runs in the warm interpreter, `command` through sh -c, `commands` as argv lists.

    `seed` (32 bytes) pins what it draws at level `determinism`; None leaves that to the host. `clock` is where the
    virtual clock begins and what a reading adds, in nanoseconds; None is the usual. After a `last` one the
    sandbox is of no further use: it may end as soon as it has answered. With `stdin_open` more input may come while it
    runs; a `terminal` of so many rows and columns is all three of its streams, and merges its output.
    """

    kind: Kind
    program: bytes = b""
    argv: tuple[tuple[str, ...], ...] = ()
    args: tuple[str, ...] = ()
    files: tuple[tuple[str, bytes, int], ...] = ()
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout_s: float = 60.0
    output_bytes: int | None = None
    output_kill_bytes: int | None = None
    keep_going: bool = False
    seed: bytes | None = None
    determinism: Determinism = "none"
    clock: tuple[int | None, int | None] = (None, None)
    last: bool = False
    stdin_open: bool = False
    terminal: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        require((self.seed is None) == (self.determinism == "none"), "a seed and a determinism level come together")
        require(self.kind in ("code", "command", "commands"), f"kind is code, command or commands, not {self.kind!r}")
        timeout = self.timeout_s
        require(
            isinstance(timeout, (int, float)) and 0 < timeout <= EXEC_TIMEOUT_LIMIT_S,
            f"timeout_s must be above 0 and at most {EXEC_TIMEOUT_LIMIT_S:.0f} seconds, not {timeout!r}",
        )
        require(self.output_bytes is None or self.output_bytes >= 0, "output_bytes must not be negative")
        self._check_program()
        for path, _, mode in self.files:
            check_path(path)
            require(0 <= mode <= 0o7777, f"file mode {mode!r} of {path} is not a mode")

    def _check_program(self) -> None:
        if self.kind == "commands":
            require(bool(self.argv) and all(self.argv), "commands must be a list of non-empty argument lists")
        elif self.kind == "command":
            require(self.program.strip() != b"", "command is empty")
        arguments = [a.encode(errors="surrogateescape") for argv in self.argv for a in argv]
        if self.kind == "command":
            arguments.append(self.program)
        for argument in arguments:
            _check_string(argument, "an argument", "send it as a file or on stdin")
        if self.kind != "code":
            self._check_environment(
                max((sum(len(a) + 9 for a in argv) for argv in self.argv), default=len(self.program))
            )

    def _check_environment(self, arguments: int) -> None:
        """What one execve(2) must carry: each string, and all of them together."""
        total = arguments
        for name, value in self.env.items():
            text = f"{name}={value}".encode(errors="surrogateescape")
            _check_string(text, f"the environment variable {name[:64]}", "send it as a file")
            total += len(text) + 9
        require(
            total < ARGUMENTS_LIMIT,
            f"arguments and environment of {total} bytes are over the kernel's limit of {ARGUMENTS_LIMIT}",
            "send them as a file or on stdin",
        )


def _check_string(text: bytes, what: str, hint: str) -> None:
    """Refuse one that execve(2) would."""
    size = len(text)
    require(size < ARGUMENT_LIMIT, f"{what} of {size} bytes is over the kernel's limit of {ARGUMENT_LIMIT}", hint)
    require(b"\0" not in text, f"{what} holds a NUL byte")


def check_path(path: str) -> None:
    """Refuse a path that cannot name a file in a sandbox."""
    require(isinstance(path, str) and path.startswith("/"), f"path {path!r} is not absolute", "give it as /work/name")
    require("\0" not in path and len(path.encode(errors="surrogateescape")) < 4096, f"path {path[:64]!r} is not usable")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecOutcome:
    """What happened. `order` gives (stream, length) runs of the kept bytes in the order they arrived.

    `waited` is False where the program's interpreter was started for it, though the template has one wait. `check` is
    what one that was pinned ahead drew first.
    """

    status: Status
    exit_code: int | None
    signal: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    order: tuple[tuple[int, int], ...] = ()
    truncated: bool = False
    stdout_total: int = 0
    stderr_total: int = 0
    ready_ns: int = 0
    start_ns: int = 0
    end_ns: int = 0
    cpu_us: int = 0
    maxrss_kib: int = 0
    steps: tuple[Mapping[str, Any], ...] = ()
    seed_ack: str = "off"
    pinned: tuple[str, ...] = ()
    waited: bool = True
    check: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnd:
    """How a guest program ended, with the head and tail of what it printed."""

    status: Status
    exit_code: int | None
    signal: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""


OnOutput = Callable[[int, bytes], Awaitable[None]]


class Program(Protocol):
    """A guest program running in a box."""

    async def wait(self) -> ProgramEnd:
        """Wait for its end."""
        ...

    async def pins(self) -> tuple[str, tuple[str, ...]]:
        """`seed_ack` so far, and what is pinned. Raises `SandboxFailed` when a pin did not hold."""
        ...


class Box(Protocol):
    """One sandbox. Every method raises `SandboxGone` once it has ended."""

    id: int
    warm_hit: bool
    fork_time_ms: float
    isolation: str

    async def ready(self) -> None:
        """Wait until it is isolated and answers; `fork_time_ms` is known from then on. Raises `SandboxFailed`."""
        ...

    async def exec(
        self, request: ExecRequest, on_output: OnOutput | None = None, on_start: OnStart | None = None
    ) -> ExecOutcome:
        """Run one thing to its end. A failing program is an outcome, not an exception.

        A slow `on_output` delays its own news of the end, and not the end.
        """
        ...

    async def dial(self, port: int) -> socket.socket:
        """A connection to what listens on a port inside. Raises `PortClosed`."""
        ...

    async def start(
        self, program: str, config: Mapping[str, Any], channel: socket.socket, *, env: Mapping[str, str] | None = None
    ) -> Program:
        """Start a guest program whose other end of `channel` the caller keeps. Takes ownership of `channel`."""
        ...

    async def open(self, path: str, mode: Literal["r", "w", "a"], perm: int = 0o644) -> tuple[int, int]:
        """A descriptor of a regular file in the sandbox, and its size. The caller closes it."""
        ...

    async def pack(self, path: str) -> int:
        """A pipe's read end that yields a tar of `path`. The caller closes it."""
        ...

    async def unpack(self, path: str, source: int) -> int:
        """Extract the tar that `source` yields below `path`; how many members. Takes ownership of `source`."""
        ...

    async def files(self, operation: Literal["stat", "list", "remove", "mkdir"], path: str) -> Mapping[str, Any]:
        """Look at or change the sandbox's files.

        stat tells `type`, `size`, `perm` and `mtime_ns`; list tells `entries` of these, each with its `name`, and
        whether they are `truncated`.
        """
        ...

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed something in it for memory; False where that cannot be known."""
        ...

    def waited_s(self) -> float:
        """How long its processes were runnable without a CPU since last asked; 0.0 where that cannot be known."""
        ...

    def cpu_s(self) -> float:
        """CPU time that its processes took, known once it has ended; 0.0 where it cannot be known."""
        ...

    async def kill(self) -> None:
        """End it and everything in it. Idempotent; returns when nothing of it is left."""
        ...

    def when_gone(self, call: Callable[[str], None]) -> None:
        """Have something called when it has ended, for whatever reason, with the reason."""
        ...

    async def wait_gone(self) -> str:
        """Wait until it has ended, for whatever reason; the reason."""
        ...


class Template(Protocol):
    """A warm template. `solos` says whether its forks may be `solo`, every limit kept without an agent's help."""

    spec: TemplateSpec
    digest: str
    solos: bool

    async def fork(self, request: BoxRequest) -> Box:
        """A new sandbox, perhaps still being born: its requests wait for that."""
        ...


class Backend(Protocol):
    """A way of making sandboxes."""

    name: str

    async def start(self) -> None:
        """Get ready, and sweep what an earlier run left. Raises `IsolationUnavailable`."""
        ...

    async def close(self) -> None:
        """End every template and sandbox. Idempotent."""
        ...

    async def template(self, spec: TemplateSpec) -> Template:
        """The warm template of a spec, started on first use."""
        ...

    def capabilities(self) -> Mapping[str, Any]:
        """What this host allows, and which isolation results."""
        ...

    def stats(self) -> Mapping[str, Any]:
        """Counts and depths, for metrics."""
        ...

    def in_use(self) -> Set[int]:
        """The boxes that live and are not parked."""
        ...
