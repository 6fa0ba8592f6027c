"""What an agent says is believed only as far as it adds up."""

from __future__ import annotations

import os
import socket
import tempfile
from typing import Any

import pytest

from hotbed.errors import AtCapacity, FileMissing, SandboxFailed
from hotbed.guest.frames import FrameError
from hotbed.runtime import answers


def result(**changes: Any) -> dict[str, Any]:
    """A good answer with some fields replaced."""
    good: dict[str, Any] = {
        "op": "result", "id": "1", "status": "ok", "exit_code": 0, "signal": None, "stdout": 2, "stderr": 1,
        "order": [[1, 1], [2, 1], [1, 1]], "truncated": False, "stdout_total": 2, "stderr_total": 1,
        "ready_ns": 1, "start_ns": 2, "end_ns": 3, "cpu_us": 4, "maxrss_kib": 5,
    }  # fmt: skip
    return {**good, **changes}


def test_good_answer_becomes_an_outcome() -> None:
    """Streams are cut apart, and the order of their pieces kept."""
    outcome = answers.outcome_of(result(), b"abX")

    assert (outcome.status, outcome.stdout, outcome.stderr) == ("ok", b"ab", b"X")
    assert outcome.order == ((1, 1), (2, 1), (1, 1))


@pytest.mark.parametrize(
    "lie",
    [
        {"status": "splendid"},
        {"status": 0},
        {"status": None},
        {"stdout": 3, "stderr": 1},
        {"stdout": -1, "stderr": 4},
        {"stdout": True},
        {"exit_code": "0"},
        {"exit_code": 256},
        {"signal": -9},
        {"order": [[1, 2]]},
        {"order": [[3, 3]]},
        {"order": [[1, 2], [2, 1], [2, 0]]},
        {"order": [[1, 1e0], [2, 1]]},
        {"order": "12"},
        {"stdout_total": 1 << 70},
        {"end_ns": 1.5},
        {"steps": {}},
        {"steps": [1]},
        {"steps": [{"exit_code": []}]},
    ],
)
def test_lie_is_no_outcome(lie: dict[str, Any]) -> None:
    """Each would otherwise reach a trainer, or crash on its way there."""
    with pytest.raises(FrameError):
        answers.outcome_of(result(**lie), b"abX")


def test_errors_become_exceptions_by_code() -> None:
    """An unknown code, or none, is the sandbox's failure."""
    assert isinstance(answers.error_of({"code": "not_found", "message": "no"}), FileMissing)
    assert type(answers.error_of({"code": "isolation_failed", "message": "no"})) is SandboxFailed
    assert type(answers.error_of({"code": ["x"], "message": 7})) is SandboxFailed
    busy = answers.error_of({"code": "busy", "message": "no room"})
    assert isinstance(busy, AtCapacity) and busy.retry_after_s
    assert len(str(answers.error_of({"message": "x" * 100_000}))) < 5000


def test_only_a_regular_file_of_the_sandboxes_disk_is_taken() -> None:
    """A pipe would block whoever reads it; a file of proc acts on whoever does."""
    with open("/proc/self/status", "rb") as proc, pytest.raises(FrameError):
        answers.check_regular(proc.fileno())
    reader, writer = os.pipe()
    for fd in (reader, writer):
        with pytest.raises(FrameError):
            answers.check_regular(fd)
        os.close(fd)
    memory = os.memfd_create("file")
    os.write(memory, b"12345")

    assert answers.check_regular(memory) == 5  # a memfd lives on a tmpfs, as a sandbox's files do
    os.close(memory)


def test_tar_must_come_through_a_pipe() -> None:
    """Reading must end when the sandbox does."""
    one, other = socket.socketpair()
    with one, other, tempfile.TemporaryFile() as file:
        for fd in (one.fileno(), file.fileno()):
            with pytest.raises(FrameError):
                answers.check_pipe(fd)
