"""A streamed exec: output as it happens, the result last."""

from __future__ import annotations

from collections.abc import Callable

from hotbed.errors import Error, ProtocolError
from hotbed.sdk.bodies import read_json
from hotbed.sdk.results import Result, result_from_wire
from hotbed.wire.codec import from_wire
from hotbed.wire.execs import OutputEvent

OnOutput = Callable[[int, bytes], object]


class OutputLines:
    """A sink for the node's event lines: hands output on, keeps the last word."""

    def __init__(self, on_output: OnOutput) -> None:
        self._on_output = on_output
        self._partial: list[bytes] = []
        self._result: Result | None = None

    def write(self, data: bytes, /) -> None:
        """Take the next bytes of the stream. Raises the error that the stream ends with."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = b"".join([*self._partial, line])
            self._partial.clear()
            if whole:
                self._event(read_json(whole))
        if rest:
            self._partial.append(rest)

    def result(self) -> Result:
        """The last line."""
        if self._result is None:
            raise ProtocolError("the output ended without a result", hint="the node went away while it sent it")
        return self._result

    def _event(self, data: object) -> None:
        event = data.get("event") if isinstance(data, dict) else None
        if event == "output":
            piece = from_wire(OutputEvent, data)
            self._on_output(piece.fd, piece.data_bytes)
        elif event == "result" and isinstance(data, dict):
            self._result = result_from_wire(data.get("result"))
        elif event == "error" and isinstance(data, dict) and isinstance(data.get("error"), dict):
            told = data["error"]
            raise Error.from_wire(str(told.get("code")), str(told.get("message")), hint=told.get("hint"))
        else:
            raise ProtocolError(f"an output line that is none of ours: {str(data)[:80]}")
