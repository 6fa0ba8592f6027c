"""An exec as a stream of JSON lines: output events as they happen, then one result or one error.

A client that reads slowly slows the program down and never fills the node's memory; when it hangs up, the exec is
cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from hotbed.runtime.base import OnOutput
from hotbed.server.connection import Emit, Stream
from hotbed.server.errors import as_error, error_json
from hotbed.wire.execs import ExecResponse, OutputEvent, ResultEvent, text_or_bytes
from hotbed.wire.routes import NDJSON

Run = Callable[[OnOutput], Awaitable[ExecResponse]]


def stream_exec(run: Run) -> Stream:
    """The response that carries a streamed exec."""

    async def produce(emit: Emit) -> None:
        async def on_output(fd: int, data: bytes) -> None:
            text, raw = text_or_bytes(data)
            await emit(line(OutputEvent(fd=2 if fd == 2 else 1, data=text, data_b64=raw)))

        try:
            await emit(line(ResultEvent(result=await run(on_output))))
        except Exception as failure:  # noqa: BLE001  the stream's boundary: the status line has been sent already
            error = msgspec.Raw(error_json(as_error(failure)).encode())
            await emit(line({"error": error, "event": "error"}))

    return Stream(produce, media_type=NDJSON)


def line(event: Any) -> bytes:
    """One line of ndjson."""
    return msgspec.json.encode(event) + b"\n"
