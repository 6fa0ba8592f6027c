"""An exec as a stream of JSON lines."""

from __future__ import annotations

import asyncio

from hotbed.errors import SandboxGone
from hotbed.runtime.base import OnOutput
from hotbed.server.streams import stream_exec
from hotbed.wire.execs import ExecResponse
from tests.unit.server.asking import Asked

RESPONSE = ExecResponse(id="e", status="ok", ok=True, exit_code=0)


async def streamed(run: object) -> Asked:
    """A streamed answer."""
    asked = Asked("POST", "/", b"", {})
    await stream_exec(run)(asked.scope, asked.receive, asked.send)  # type: ignore[arg-type]  # each test has its own
    return asked


def test_output_comes_first_and_the_result_last() -> None:
    """Any bytes survive."""

    async def run(on_output: OnOutput) -> ExecResponse:
        await on_output(1, b"a")
        await on_output(2, b"\xff")
        return RESPONSE

    lines = asyncio.run(streamed(run)).answer.lines

    assert [line["event"] for line in lines] == ["output", "output", "result"]
    assert (lines[0]["fd"], lines[0]["data"], lines[1]["data_b64"]) == (1, "a", "/w==")
    assert lines[2]["result"]["exit_code"] == 0


def test_a_failure_is_the_last_line() -> None:
    """The status line has been sent by then."""

    async def run(on_output: OnOutput) -> ExecResponse:
        raise SandboxGone("it ended")

    lines = asyncio.run(streamed(run)).answer.lines

    assert [line["event"] for line in lines] == ["error"]
    assert lines[0]["error"]["code"] == "session_gone"
