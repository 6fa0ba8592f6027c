"""Running processes for the fake backend."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from hotbed.runtime.backends.fake_box import FakeBox
from hotbed.runtime.backends.fake_run import ending
from hotbed.runtime.base import ExecOutcome, ExecRequest, Limits, OnOutput


def run(root: Path, *, on_output: OnOutput | None = None, limits: Limits | None = None, **fields: Any) -> ExecOutcome:
    """One exec in a box of its own."""

    async def scenario() -> ExecOutcome:
        box = FakeBox(1, str(root / "box"), limits=limits or Limits(), env={}, on_gone=lambda box: None)
        try:
            return await box.exec(ExecRequest(**{"kind": "command", "timeout_s": 20.0, **fields}), on_output)
        finally:
            await box.kill()

    return asyncio.run(scenario())


def test_streams_are_apart_and_in_order(tmp_path: Path) -> None:
    """Exit code and sizes as they were."""
    outcome = run(tmp_path, program=b"echo a; sleep 0.05; echo b >&2; exit 3")

    assert (outcome.stdout, outcome.stderr, outcome.order) == (b"a\n", b"b\n", ((1, 2), (2, 2)))
    assert (outcome.status, outcome.exit_code, outcome.stdout_total) == ("exit", 3, 2)
    assert outcome.end_ns > outcome.start_ns


def test_a_child_that_holds_the_pipe_holds_nobody_up(tmp_path: Path) -> None:
    """The end of a program is its end, not that of its output."""
    began = time.monotonic()
    outcome = run(tmp_path, program=b"sleep 30 & echo done")

    assert (outcome.status, outcome.stdout) == ("ok", b"done\n")
    assert time.monotonic() - began < 5


def test_a_timeout_keeps_what_was_printed(tmp_path: Path) -> None:
    """And kills what was started."""
    outcome = run(tmp_path, program=b"echo partial; setsid sleep 30; echo never", timeout_s=0.3)

    assert (outcome.status, outcome.exit_code, outcome.stdout) == ("timeout", None, b"partial\n")


def test_a_flood_is_kept_head_and_tail(tmp_path: Path) -> None:
    """In bounded memory."""
    outcome = run(tmp_path, program=b"echo first; seq 100000; echo last", output_bytes=100)

    assert outcome.truncated
    assert len(outcome.stdout) == 100
    assert outcome.stdout.startswith(b"first\n")
    assert outcome.stdout.endswith(b"last\n")


def test_a_flood_without_end_is_ended(tmp_path: Path) -> None:
    """With a status of its own."""
    outcome = run(tmp_path, program=b"yes", limits=Limits(output_kill_bytes=1 << 20))

    assert outcome.status == "output"


def test_commands_stop_at_the_first_failure_unless_asked(tmp_path: Path) -> None:
    """Each has its step."""
    argv = (("echo", "a"), ("false",), ("echo", "b"), ("no-such-program",))
    stopped = run(tmp_path, kind="commands", argv=argv)
    went_on = run(tmp_path, kind="commands", argv=argv, keep_going=True)

    assert (stopped.stdout, [step["exit_code"] for step in stopped.steps]) == (b"a\n", [0, 1])
    assert (went_on.stdout, [step["exit_code"] for step in went_on.steps]) == (b"a\nb\n", [0, 1, 0, 127])
    assert b"no-such-program: No such file" in went_on.stderr


def test_standard_input_arrives_whole(tmp_path: Path) -> None:
    """More than a pipe holds."""
    outcome = run(tmp_path, program=b"wc -c", stdin=b"x" * 1_000_000)

    assert outcome.stdout.strip() == b"1000000"


def test_streamed_output_waits_for_its_reader(tmp_path: Path) -> None:
    """All of it arrives, in order, however slowly it is taken."""
    taken: list[bytes] = []

    async def slowly(fd: int, data: bytes) -> None:
        await asyncio.sleep(0.001)
        taken.append(data)

    outcome = run(tmp_path, program=b"seq 200000", on_output=slowly, output_bytes=10)

    assert b"".join(taken) == b"".join(b"%d\n" % number for number in range(1, 200_001))
    assert outcome.stdout_total == len(b"".join(taken))


@pytest.mark.parametrize(("code", "end"), [(0, ("ok", 0, None)), (2, ("exit", 2, None)), (-9, ("signal", None, 9))])
def test_an_end_is_told_in_three_words(code: int, end: tuple[str, int | None, int | None]) -> None:
    """Status, exit code, signal."""
    assert ending(code) == end
