"""A request as the frame that an agent gets."""

from __future__ import annotations

import pytest

from hotbed.guest.agent.request import parse
from hotbed.guest.frames import FrameError
from hotbed.runtime import execs
from hotbed.runtime.base import ExecRequest, Limits


def test_agent_reads_what_was_asked() -> None:
    """Both ends in one test: the body is cut where it was joined."""
    request = ExecRequest(
        kind="code", program=b"pass", args=("a",), files=(("/work/x", b"\x00\xff", 0o600), ("/work/y", b"", 0o755)),
        stdin=b"in", env={"A": "b"}, cwd="/tmp", timeout_s=3.0,
    )  # fmt: skip

    header, body = execs.to_frame(request, "7", Limits(), stream=True)
    read = parse(dict(header), body)

    assert (read.id, read.kind, read.program, read.stdin) == ("7", "code", b"pass", b"in")
    assert list(read.files) == [("/work/x", b"\x00\xff", 0o600), ("/work/y", b"", 0o755)]
    assert (list(read.args), dict(read.env), read.cwd, read.timeout_s) == (["a"], {"A": "b"}, "/tmp", 3.0)
    assert read.stream


def test_commands_travel_as_lists() -> None:
    """No shell in between."""
    header, body = execs.to_frame(ExecRequest(kind="commands", argv=(("echo", "a b"),)), "1", Limits(), stream=False)

    assert (header["argv"], body) == ([["echo", "a b"]], b"")


@pytest.mark.parametrize(("asked", "kept"), [(None, 1000), (10, 10), (5000, 1000)])
def test_output_is_kept_up_to_the_sandboxes_limit(asked: int | None, kept: int) -> None:
    """A request may ask for less."""
    request = ExecRequest(kind="code", output_bytes=asked)

    assert execs.to_frame(request, "1", Limits(output_bytes=1000), stream=False)[0]["output_bytes"] == kept


def test_patience_is_longer_than_the_limit_and_grows_with_the_bytes() -> None:
    """The agent keeps the time; the node only notices an agent that does not."""
    quick = execs.patience_s(ExecRequest(kind="code", timeout_s=5.0))

    assert quick > 5.0
    assert execs.patience_s(ExecRequest(kind="code", timeout_s=5.0, stdin=bytes(100 << 20))) > quick


def test_streamed_piece_names_its_stream() -> None:
    """Anything else is a lie."""
    assert execs.stream_of({"fd": 2}) == 2
    with pytest.raises(FrameError):
        execs.stream_of({"fd": "1"})


def test_sandbox_lost_to_memory_is_an_outcome() -> None:
    """The program's doing, not ours."""
    assert execs.lost_to_memory().status == "oom"
