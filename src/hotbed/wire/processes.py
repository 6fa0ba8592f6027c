"""Programs that are talked to while they run: a WebSocket each, from the request to the result.

The client's first message is a `ProcessRequest` as JSON text. After that its binary messages are input and its text
messages are `Control`s; the node's binary messages are output, one byte that names the stream (1 or 2) and then the
bytes, and its text messages are events: `started`, `taken` (so much input has been read), last `result` or `error`.
Who closes the socket ends the program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hotbed.wire.checks import require
from hotbed.wire.execs import ExecRequest, check_exec

PROCESS_SOCKET = "/v1/sandboxes/{id}/process"
INPUT_WINDOW = 256 << 10  # how much input a client may send ahead of what was taken
SIZE_LIMIT = (1 << 16) - 1
SIGNALS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """A terminal's size."""

    rows: int = 24
    columns: int = 80

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            value = getattr(self, name)
            fits = type(value) is int and 0 < value <= SIZE_LIMIT
            require(fits, f"terminal.{name} must be 1 to {SIZE_LIMIT}, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRequest(ExecRequest):
    """What to run, and whether on a terminal. Input stays open until the client ends it."""

    terminal: Terminal | None = None

    def __post_init__(self) -> None:
        check_exec(self)
        pinned = self.seed is not None or self.determinism not in (None, "none")
        require(
            not pinned, "a process that is fed while it runs cannot be pinned", "use exec for what is to be replayed"
        )
        if self.terminal is not None:
            alone = self.code is None and self.code_b64 is None and (self.commands is None or len(self.commands) == 1)
            require(alone, "a terminal is for one command", 'for Python, give command="python3"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A word from the client while its program runs."""

    op: Literal["end_input", "signal", "resize", "kill"]
    signal: int | None = None
    rows: int | None = None
    columns: int | None = None

    def __post_init__(self) -> None:
        if self.op == "signal":
            known = type(self.signal) is int and 0 < self.signal <= SIGNALS
            require(known, f"signal must be 1 to {SIGNALS}, not {self.signal!r}")
        if self.op == "resize":
            require(self.rows is not None and self.columns is not None, "resize needs rows and columns")
            Terminal(rows=self.rows or 0, columns=self.columns or 0)
