"""What running something means, on any backend."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.errors import BadPath, FileMissing
from hotbed.runtime.base import ExecOutcome, ExecRequest
from hotbed.runtime.running import Running
from tests.conformance.conftest import Harness


def test_code_runs_and_its_output_comes_back(harness: Harness) -> None:
    """The simplest rollout."""
    outcome = harness.once("code", "print(sum(range(1000)))")

    assert (outcome.status, outcome.exit_code, outcome.stdout, outcome.stderr) == ("ok", 0, b"499500\n", b"")


def test_streams_are_apart_and_their_order_is_known(harness: Harness) -> None:
    """Merged output must be reproducible from what is kept apart."""
    outcome = harness.once("command", "echo one; sleep 0.05; echo two >&2; sleep 0.05; echo three")

    assert (outcome.stdout, outcome.stderr) == (b"one\nthree\n", b"two\n")
    assert sum(length for stream, length in outcome.order if stream == 1) == len(outcome.stdout)
    assert [stream for stream, _ in outcome.order] == [1, 2, 1]


def test_failing_program_is_a_result(harness: Harness) -> None:
    """An exception would mean that we failed."""
    outcome = harness.once("command", "echo before; exit 3")

    assert (outcome.status, outcome.exit_code, outcome.stdout) == ("exit", 3, b"before\n")


def test_uncaught_exception_prints_its_traceback(harness: Harness) -> None:
    """A trainer shows it to the model."""
    outcome = harness.once("code", "raise ValueError('no')")

    assert (outcome.status, outcome.exit_code) == ("exit", 1)
    assert b"ValueError: no" in outcome.stderr


def test_killed_program_tells_its_signal(harness: Harness) -> None:
    """A crash is told apart from an exit code."""
    outcome = harness.once("command", "kill -SEGV $$")

    assert (outcome.status, outcome.signal) == ("signal", 11)


def test_timeout_keeps_what_was_printed(harness: Harness) -> None:
    """Partial output is often the whole point of looking."""
    outcome = harness.once("command", "echo begun; sleep 60", timeout_s=0.3)

    assert (outcome.status, outcome.stdout) == ("timeout", b"begun\n")


def test_files_are_written_first_exactly_as_given(harness: Harness) -> None:
    """Any bytes, any depth, with their mode."""
    content = bytes(range(256))

    outcome = harness.once(
        "command",
        "cat /work/a/b.bin; test -x /work/run",
        files=(("/work/a/b.bin", content, 0o644), ("/work/run", b"", 0o755)),
    )

    assert (outcome.exit_code, outcome.stdout) == (0, content)


def test_stdin_environment_and_directory_are_given(harness: Harness) -> None:
    """What a program starts with."""
    outcome = harness.once("command", 'cat; echo "$NAME"; pwd', stdin=b"in\n", env={"NAME": "value"}, cwd="/tmp")

    assert outcome.stdout == b"in\nvalue\n/tmp\n"


def test_code_gets_its_arguments_and_is_main(harness: Harness) -> None:
    """As `python file.py a b` would."""
    outcome = harness.once("code", "import sys; print(__name__, sys.argv[1:])", args=("a", "b c"))

    assert outcome.stdout == b"__main__ ['a', 'b c']\n"


def test_commands_stop_at_the_first_failure(harness: Harness) -> None:
    """Like make, unless asked to go on."""
    argv = (("echo", "1"), ("false",), ("echo", "3"))

    assert harness.once("commands", argv=argv).stdout == b"1\n"
    assert harness.once("commands", argv=argv, keep_going=True).stdout == b"1\n3\n"


def test_output_over_the_cap_keeps_head_and_tail(harness: Harness) -> None:
    """The beginning says what ran, the end how it went."""
    outcome = harness.once("command", "echo HEAD; head -c 100000 /dev/zero; echo TAIL", output_bytes=1000)

    assert outcome.truncated
    assert outcome.stdout_total == 100_010
    assert outcome.stdout.startswith(b"HEAD\n") and outcome.stdout.endswith(b"TAIL\n")
    assert len(outcome.stdout) <= 1000


def test_nothing_leaks_from_one_code_to_the_next(harness: Harness) -> None:
    """The warm interpreter is forked for each."""
    with harness.box() as box:
        harness.exec(
            box, "code", "import builtins, sys; builtins.leak = sys.leak = 1; import os; os.environ['LEAK'] = '1'"
        )

        outcome = harness.exec(
            box,
            "code",
            "import os, sys; print(hasattr(sys, 'leak'), 'leak' in dir(__builtins__), 'LEAK' in os.environ)",
        )

    assert outcome.stdout == b"False False False\n"


def test_background_process_lives_on_between_execs(harness: Harness) -> None:
    """A server started by one command is there for the next."""
    with harness.box() as box:
        harness.exec(box, "command", "(while :; do echo up >/work/alive; sleep 0.05; done) >/dev/null 2>&1 &")

        outcome = harness.exec(box, "command", "rm -f /work/alive; until grep -qs up /work/alive; do sleep 0.02; done")

    assert outcome.status == "ok"


def test_output_streams_while_it_runs(harness: Harness) -> None:
    """A person watches; the pieces add up to the result."""
    pieces: list[tuple[int, bytes]] = []

    async def collect(stream: int, data: bytes) -> None:
        pieces.append((stream, data))

    with harness.box() as box:
        request = ExecRequest(kind="command", program=b"echo a; sleep 0.1; echo b >&2")
        outcome = harness.run(box.exec(request, collect))

    assert outcome.status == "ok"
    assert [(stream, data) for stream, data in pieces if data] == [(1, b"a\n"), (2, b"b\n")]


def test_execs_of_one_sandbox_run_side_by_side(harness: Harness) -> None:
    """One long exec does not hold up another."""
    with harness.box() as box:
        request = ExecRequest(kind="command", program=b"sleep 0.3; echo done")

        async def both() -> list[bytes]:
            return [outcome.stdout for outcome in await asyncio.gather(box.exec(request), box.exec(request))]

        assert harness.run(both()) == [b"done\n", b"done\n"]


@pytest.mark.parametrize("missing", ["/nowhere", "/etc/passwd"])
def test_bad_working_directory_is_an_error_and_nothing_runs(harness: Harness, missing: str) -> None:
    """Not a surprise in another directory."""
    with harness.box() as box:
        with pytest.raises((FileMissing, BadPath)):
            harness.exec(box, "command", "touch /work/ran", cwd=missing)

        assert harness.exec(box, "command", "ls /work").stdout == b""


def test_a_slow_reader_does_not_delay_the_deadline(harness: Harness) -> None:
    """It holds up the program that writes, not its end, nor anything else in the sandbox."""

    async def slowly(stream: int, data: bytes) -> None:
        await asyncio.sleep(0.5)

    async def both() -> tuple[ExecOutcome, ExecOutcome]:
        flood = ExecRequest(kind="command", program=b"yes", timeout_s=0.5, output_bytes=1000)
        quick = ExecRequest(kind="command", program=b"echo here", timeout_s=5.0)
        flooding = asyncio.ensure_future(box.exec(flood, slowly))
        await asyncio.sleep(0.2)
        other = await asyncio.wait_for(box.exec(quick), 5)
        return await flooding, other

    with harness.box() as box:
        flooded, other = harness.run(both())

    assert flooded.status == "timeout"
    assert flooded.end_ns - flooded.start_ns < 5e9
    assert flooded.truncated and len(flooded.stdout) == 1000
    assert other.stdout == b"here\n"


def test_a_running_exec_can_be_fed_and_signalled(harness: Harness) -> None:
    """A conversation with a program, and its end."""
    heard = bytearray()
    started: list[Running] = []

    async def hear(stream: int, data: bytes) -> None:
        if stream == 1:
            heard.extend(data)

    async def talk() -> ExecOutcome:
        program = b"trap 'echo bye; exit 4' TERM; read x; echo got $x; while :; do sleep 0.01; done"
        request = ExecRequest(kind="command", program=program, stdin_open=True, timeout_s=20.0)
        running = asyncio.ensure_future(box.exec(request, hear, started.append))
        while not started:
            await asyncio.sleep(0.001)
        await started[0].feed(b"this\n")
        while b"got" not in heard:
            await asyncio.sleep(0.001)
        started[0].signal(15)
        return await running

    with harness.box() as box:
        outcome = harness.run(talk())

    assert (outcome.exit_code, bytes(heard)) == (4, b"got this\nbye\n")


def test_more_input_than_any_buffer_arrives_whole(harness: Harness) -> None:
    """Whoever feeds waits for whoever reads."""
    data = bytes(range(256)) * 8192
    started: list[Running] = []

    async def talk() -> ExecOutcome:
        request = ExecRequest(kind="command", program=b"sleep 0.1; cksum", stdin_open=True, timeout_s=20.0)
        running = asyncio.ensure_future(box.exec(request, None, started.append))
        while not started:
            await asyncio.sleep(0.001)
        await started[0].feed(data)
        started[0].end_input()
        return await running

    with harness.box() as box:
        outcome = harness.run(talk())

    assert outcome.stdout.split()[1] == b"2097152"


def test_a_stream_may_come_with_more_stdin_than_a_pipe_holds(harness: Harness) -> None:
    """It was sent with the request: that it is read is no news."""

    async def forget(stream: int, data: bytes) -> None:
        pass

    request = ExecRequest(kind="command", program=b"sleep 0.1; cksum", stdin=bytes(300_000), timeout_s=20.0)
    with harness.box() as box:
        outcome = harness.run(box.exec(request, forget))

    assert outcome.stdout.split()[1] == b"300000"


def test_the_input_of_an_idle_terminal_can_be_ended(harness: Harness) -> None:
    """As by Ctrl-D: the program reads its end, and the sandbox goes on. The fake has no terminals."""
    started: list[Running] = []
    request = ExecRequest(
        kind="commands", argv=(("cat",),), stdin_open=True, terminal=None if harness.name == "fake" else (24, 80)
    )

    async def talk() -> ExecOutcome:
        running = asyncio.ensure_future(box.exec(request, None, started.append))
        while not started:
            await asyncio.sleep(0.001)
        started[0].end_input()
        return await running

    with harness.box() as box:
        assert harness.run(talk()).status == "ok"
        assert harness.run(box.exec(ExecRequest(kind="command", program=b"true"))).status == "ok"
