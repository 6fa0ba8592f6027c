"""Reading what an agent answers. Everything in it is what the sandboxed program may have made it say.

So each field is checked for its type and range, lengths must add up, and a descriptor must be a regular file of the
sandbox's own filesystem (files of proc are "regular" too, and act on whoever reads or writes them).
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Mapping
from typing import Any, get_args

from hotbed.errors import (
    AtCapacity,
    BadPath,
    Error,
    FileDenied,
    FileMissing,
    InvalidRequest,
    NoSpace,
    NotAFile,
    PortClosed,
    SandboxFailed,
    TooLarge,
)
from hotbed.guest import kernel
from hotbed.guest.frames import FrameError, Header
from hotbed.runtime.base import ExecOutcome, ProgramEnd, Status
from hotbed.runtime.link import number

_STATUSES = get_args(Status)
_MOST_STEPS = 10_000
_BUSY_S = 1.0
_NR_FSTATFS = 138
_FILESYSTEMS = (0x794C7630, 0x01021994)  # overlayfs, tmpfs
_ERRORS: Mapping[str, type[Error]] = {
    "not_found": FileMissing,
    "not_a_file": NotAFile,
    "denied": FileDenied,
    "no_space": NoSpace,
    "bad_path": BadPath,
    "too_large": TooLarge,
    "bad_request": InvalidRequest,
    "exists": InvalidRequest,
    "not_empty": InvalidRequest,
    "busy": AtCapacity,
    "refused": PortClosed,
    "no_interpreter": InvalidRequest,
    "isolation_failed": SandboxFailed,
}


def error_of(header: Header) -> Error:
    """The exception that an error frame stands for."""
    code, message = header.get("code"), header.get("message")
    kind = _ERRORS.get(code, SandboxFailed) if isinstance(code, str) else SandboxFailed
    text = message[:4096] if isinstance(message, str) else "the sandbox refused without saying why"
    return kind(text, retry_after_s=_BUSY_S) if kind is AtCapacity else kind(text)


def outcome_of(header: Header, body: bytes) -> ExecOutcome:
    """A `result` frame as a value. Raises `FrameError`."""
    stdout, stderr = streams_of(header, body)
    return ExecOutcome(
        status=_status(header),
        exit_code=_maybe(header, "exit_code"),
        signal=_maybe(header, "signal"),
        stdout=stdout,
        stderr=stderr,
        order=_order(header.get("order"), len(stdout), len(stderr)),
        truncated=header.get("truncated") is True,
        stdout_total=number(header, "stdout_total"),
        stderr_total=number(header, "stderr_total"),
        ready_ns=number(header, "ready_ns"),
        start_ns=number(header, "start_ns"),
        end_ns=number(header, "end_ns"),
        cpu_us=number(header, "cpu_us"),
        maxrss_kib=number(header, "maxrss_kib"),
        steps=_steps(header.get("steps", [])),
        waited=header.get("waited") is not False,
        check=str(header.get("check", "")).encode(),
    )


def end_of(header: Header, body: bytes) -> ProgramEnd:
    """An `ended` frame as a value. Raises `FrameError`."""
    stdout, stderr = streams_of(header, body)
    return ProgramEnd(
        status=_status(header),
        exit_code=_maybe(header, "exit_code"),
        signal=_maybe(header, "signal"),
        stdout=stdout,
        stderr=stderr,
    )


def streams_of(header: Header, body: bytes) -> tuple[bytes, bytes]:
    """stdout and stderr, split as the header says. Raises `FrameError`."""
    split = number(header, "stdout", most=len(body))
    if split + number(header, "stderr", most=len(body)) != len(body):
        raise FrameError("the lengths of the streams are not that of the body")
    return body[:split], body[split:]


def _status(header: Header) -> Any:
    status = header.get("status")
    if status not in _STATUSES:
        raise FrameError("status is none that we know")
    return status


def _maybe(header: Header, name: str) -> int | None:
    return None if header.get(name) is None else number(header, name, most=255)


def _order(order: object, stdout: int, stderr: int) -> tuple[tuple[int, int], ...]:
    """The runs of the merged output; they must add up to exactly what is there."""
    left = {1: stdout, 2: stderr}
    runs: list[tuple[int, int]] = []
    for run in order if type(order) is list else ():
        if type(run) is not list or len(run) != 2 or run[0] not in (1, 2) or type(run[1]) is not int or run[1] <= 0:
            raise FrameError("order is no list of runs")
        left[run[0]] -= run[1]
        runs.append((int(run[0]), run[1]))
    if any(left.values()):
        raise FrameError("order does not add up to the output")
    return tuple(runs)


def _steps(steps: object) -> tuple[Mapping[str, Any], ...]:
    if type(steps) is not list or len(steps) > _MOST_STEPS:
        raise FrameError("steps is no list")
    return tuple(map(_step, steps))


def _step(step: object) -> Mapping[str, Any]:
    if type(step) is not dict:
        raise FrameError("a step is no object")
    names = ("exit_code", "signal")
    return {**{name: _maybe(step, name) for name in names}, "duration_us": number(step, "duration_us")}


def check_regular(fd: int) -> int:
    """The size of the file behind a descriptor, if it is a regular file of the sandbox's disk. Raises `FrameError`."""
    found = os.fstat(fd)
    answer = bytes(120)  # struct statfs
    kernel.call(_NR_FSTATFS, fd, answer)
    if not stat.S_ISREG(found.st_mode) or struct.unpack_from("q", answer)[0] not in _FILESYSTEMS:
        raise FrameError("the descriptor is no regular file of the sandbox")
    return found.st_size


def check_connection(fd: int) -> None:
    """What is relayed must be a TCP connection. Raises `FrameError`."""
    with socket.socket(fileno=os.dup(fd)) as found:
        if found.family not in (socket.AF_INET, socket.AF_INET6) or found.proto != socket.IPPROTO_TCP:
            raise FrameError("the descriptor is no TCP connection")


def check_pipe(fd: int) -> None:
    """A descriptor that yields a tar must be a pipe. Raises `FrameError`."""
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        raise FrameError("the descriptor is no pipe")
