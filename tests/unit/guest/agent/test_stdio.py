"""The streams of a program behave like Python's own, and lose less."""

from __future__ import annotations

import io
import os
import time

import pytest

from hotbed.guest.agent.stdio import _Raw
from tests.unit.guest.agent_process import AgentProcess


def test_what_was_printed_before_a_hang_is_not_lost(agent: AgentProcess) -> None:
    """A block buffer would have kept it to itself."""
    result = agent.run("code", "print('before')\nwhile 1: pass", timeout_s=0.2)

    assert (result.status, result.stdout) == ("timeout", b"before\n")


def test_a_million_lines_are_printed_fast(agent: AgentProcess) -> None:
    """After the first lines, a flush each would cost more than the program."""
    begun = time.monotonic()
    result = agent.run("code", "for i in range(300_000): print(i)")

    assert result.header["stdout_total"] == sum(len(str(i)) + 1 for i in range(300_000))
    assert time.monotonic() - begun < 5


def test_streams_have_python_s_attributes(agent: AgentProcess) -> None:
    """Programs look at them."""
    result = agent.run(
        "code",
        "import sys\n"
        "for s in (sys.stdin, sys.stdout, sys.stderr):\n"
        "    print(s.name, s.mode, s.encoding, s.errors, s.fileno(), s.isatty(), s.line_buffering)\n"
        "print(sys.stdout is sys.__stdout__)",
    )

    assert result.stdout.decode().splitlines() == [
        "<stdin> r utf-8 surrogateescape 0 False False",
        "<stdout> w utf-8 surrogateescape 1 False False",
        "<stderr> w utf-8 backslashreplace 2 False True",
        "True",
    ]


def test_bytes_and_text_keep_their_order_when_flushed(agent: AgentProcess) -> None:
    """`sys.stdout.buffer` is the buffer below."""
    result = agent.run(
        "code",
        "import sys\nprint('a', end='', flush=True)\nsys.stdout.buffer.write(b'\\xff')\nsys.stdout.flush()\n"
        "sys.stdout.write('b\\udcfe\\n')\nsys.stderr.write('\\udcfe\\n')",
    )

    assert (result.stdout, result.stderr) == (b"a\xffb\xfe\n", b"\\udcfe\n")


def test_replaced_streams_are_the_program_s(agent: AgentProcess) -> None:
    """redirect_stdout and friends."""
    result = agent.run(
        "code", "import io, sys\nreal = sys.stdout\nsys.stdout = io.StringIO()\nprint('hidden')\nreal.write('seen\\n')"
    )

    assert result.stdout == b"seen\n"


class _Interrupted:
    """A log during whose note a signal handler raises, once."""

    def __init__(self) -> None:
        self.left = 1

    def note(self, bit: int, count: int) -> None:
        """As an order log does."""
        self.left -= 1
        if self.left == 0:
            raise TimeoutError("by an alarm")


@pytest.mark.parametrize("after", ["first\n", "second\n"])
def test_a_line_whose_print_is_interrupted_is_printed_once(after: str) -> None:
    """The buffer has not heard that it was written, and tries again; so does who catches the exception, rightly."""
    reader, writer = os.pipe()
    raw = _Raw(writer, "w", closefd=True)
    raw.log = _Interrupted()  # type: ignore[assignment]  # all that is asked of one
    stream = io.TextIOWrapper(io.BufferedWriter(raw), "ascii", newline="\n", line_buffering=True)

    with pytest.raises(TimeoutError):
        print("first", file=stream)
    stream.write(after)
    stream.close()

    assert os.read(reader, 100).decode() == "first\n" + after
    os.close(reader)


def test_a_file_of_prints_stays_small() -> None:
    """Its beginning and its end are kept, however much is printed."""
    fd = os.memfd_create("prints")
    raw = _Raw(fd, "w", closefd=False)
    raw.most = 20
    for number in range(1000):
        raw.write(b"line %03d\n" % number)

    kept = os.pread(fd, 100, 0)
    assert kept.startswith(b"line 000\nl") and kept.endswith(b"line 999\n") and len(kept) <= 20
    os.close(fd)
