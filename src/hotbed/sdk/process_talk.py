"""What a client and a process say to each other, without I/O: both faces of a process are loops around this."""

from __future__ import annotations

from collections import deque

from hotbed.errors import Error, ProtocolError
from hotbed.sdk.bodies import json_body, read_json
from hotbed.sdk.results import Result, result_from_wire
from hotbed.sdk.websocket import BINARY, CLOSE, TEXT, Message
from hotbed.wire.codec import to_wire
from hotbed.wire.processes import INPUT_WINDOW, Control, ProcessRequest

PIECE = 64 << 10

Piece = tuple[int, bytes]


class ProcessTalk:
    """One process as far as its client knows it."""

    def __init__(self) -> None:
        self.started = False
        self.pieces: deque[Piece] = deque()
        self.result: Result | None = None
        self.failure: Exception | None = None
        self._ahead = 0

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to be heard."""
        return self.result is not None or self.failure is not None

    def hear(self, message: Message) -> None:
        """Take what the node says."""
        kind, data = message
        if kind == BINARY and data[:1] in (b"\1", b"\2"):
            self.pieces.append((data[0], data[1:]))
        elif kind == TEXT:
            self._event(read_json(data))
        elif kind == CLOSE:
            self.fail(ProtocolError("the process ended without a result", hint="the node went away while it ran"))
        else:
            self.fail(ProtocolError("the node sent a message that is none of ours"))

    def fail(self, failure: Exception) -> None:
        """Nothing more will be heard, for this reason, unless all has been."""
        if not self.is_over:
            self.failure = failure

    def _event(self, data: object) -> None:
        told = data if isinstance(data, dict) else {}
        event = told.get("event")
        if event == "started":
            self.started = True
        elif event == "taken":
            self._ahead -= int(told.get("bytes", 0))
        elif event == "result":
            self.result = result_from_wire(told.get("result"))
        elif event == "error" and isinstance(told.get("error"), dict):
            error = told["error"]
            self.fail(Error.from_wire(str(error.get("code")), str(error.get("message")), hint=error.get("hint")))
        else:
            self.fail(ProtocolError(f"an event that is none of ours: {str(data)[:80]}"))

    def has_room(self) -> bool:
        """Whether more input may be sent now."""
        return self._ahead + PIECE <= INPUT_WINDOW or self.is_over

    def input(self, data: bytes) -> Message:
        """A piece of input as a message."""
        self._ahead += len(data)
        return BINARY, data

    def outcome(self) -> Result:
        """The result. Raises what went wrong instead."""
        if self.result is None:
            raise self.failure or ProtocolError("the process has not ended")
        return self.result


def request_message(request: ProcessRequest) -> Message:
    """The first word."""
    return TEXT, json_body(to_wire(request))


def control(word: Control) -> Message:
    """A word about a running process."""
    return TEXT, json_body(to_wire(word))


def as_bytes(data: str | bytes) -> bytes:
    """Text as UTF-8."""
    return data.encode() if isinstance(data, str) else bytes(data)
