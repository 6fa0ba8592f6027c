"""What a process has open, whether it can be carried over, and opening it again elsewhere.

Regular files and folders below the sandbox's root are opened again by their path, at their offset: the file layer has
been restored before, so the path leads to the same content. Descriptors that share one open file share it again. The
standard streams and the lane are those of the new sandbox. Anything else is named and either refused or left out.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from hotbed.guest import kernel
from hotbed.runtime.livefork.tracee import Tracee

LANE = 3
_NR_KCMP = 312
_CREATION_FLAGS = os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_NOCTTY
_CLOEXEC = os.O_CLOEXEC
_AT_FDCWD = -100
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True)
class Handle:
    """An open file that can be opened again. `like` is a lower descriptor that shares it."""

    fd: int
    path: str
    flags: int
    offset: int
    like: int | None = None


def survey(pid: int, agent: int) -> tuple[tuple[Handle, ...], tuple[str, ...]]:
    """What can be opened again, and the names of what cannot. `agent` holds the other ends of its standard streams."""
    handles: list[Handle] = []
    problems: list[str] = []
    streams = _pipes_of(agent)
    for fd in sorted(int(name) for name in os.listdir(f"/proc/{pid}/fd")):
        found = _look(pid, fd, streams)
        if isinstance(found, str):
            problems.append(found)
        elif found is not None:
            handles.append(_joined(pid, found, handles))
    return tuple(handles), tuple(problems)


def closed_streams(pid: int) -> tuple[int, ...]:
    """The standard streams that it has closed."""
    return tuple(fd for fd in range(3) if not os.path.lexists(f"/proc/{pid}/fd/{fd}"))


def _pipes_of(agent: int) -> set[str]:
    found = set()
    for name in os.listdir(f"/proc/{agent}/fd"):
        try:
            found.add(os.readlink(f"/proc/{agent}/fd/{name}"))
        except FileNotFoundError:  # the agent is not stopped
            continue
    return found


def _look(pid: int, fd: int, streams: set[str]) -> Handle | str | None:
    """A handle, the name of a problem, or nothing where the new sandbox has its own."""
    link = f"/proc/{pid}/fd/{fd}"
    info, name = os.stat(link), os.readlink(link)
    mode = info.st_mode
    if fd == LANE or (fd in (1, 2) and stat.S_ISFIFO(mode) and name in streams) or (fd == 0 and name == "/dev/null"):
        return None
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or name in _DEVICES:
        if name.endswith(" (deleted)") or info.st_nlink == 0:
            return f"descriptor {fd}: a file that has been deleted"
        if not name.startswith("/") or name.startswith("/proc/"):
            return f"descriptor {fd}: {name}"
        flags, offset = _position(pid, fd)
        return Handle(fd, name, flags, offset)
    return f"descriptor {fd}: {_kind(mode, name)}"


def _kind(mode: int, name: str) -> str:
    if stat.S_ISSOCK(mode):
        return "a socket"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return name.removeprefix("anon_inode:").strip("[]") or "something without a name"


def _position(pid: int, fd: int) -> tuple[int, int]:
    lines = Path(f"/proc/{pid}/fdinfo/{fd}").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(fields["flags"], 8), int(fields["pos"])


def _joined(pid: int, handle: Handle, others: list[Handle]) -> Handle:
    for other in others:
        if other.path == handle.path and _same_file(pid, other.fd, handle.fd):
            return Handle(handle.fd, handle.path, handle.flags, handle.offset, other.fd)
    return handle


def _same_file(pid: int, one: int, two: int) -> bool:
    try:
        return kernel.call(_NR_KCMP, pid, pid, 0, one, two) == 0  # KCMP_FILE
    except OSError:
        return False


def open_again(tracee: Tracee, handles: tuple[Handle, ...]) -> None:
    """Make a stopped process have these open, at the same numbers. Raises `OSError` with the path."""
    for handle in handles:
        cloexec = handle.flags & _CLOEXEC
        if handle.like is not None:
            tracee.call("dup3", handle.like, handle.fd, cloexec)
            continue
        fd = open_path(tracee, handle.path, handle.flags & ~_CREATION_FLAGS)
        if fd != handle.fd:
            tracee.call("dup3", fd, handle.fd, cloexec)
            tracee.call("close", fd)
        if handle.offset:
            tracee.call("lseek", handle.fd, handle.offset, 0)


def open_path(tracee: Tracee, path: str, flags: int) -> int:
    """Make a stopped process open a path."""
    text = os.fsencode(path) + b"\0"
    found: list[int] = []
    try:
        tracee.with_scratch(
            text, lambda at: found.append(tracee.call("openat", _AT_FDCWD, at, flags, 0)), size=len(text)
        )
    except OSError as error:
        raise OSError(error.errno, f"{path}: {os.strerror(error.errno or 0)}") from None
    return found[0]
