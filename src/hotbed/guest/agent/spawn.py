"""Starts a command: posix_spawn, which shares the agent's memory until the exec instead of copying its page tables."""

from __future__ import annotations

import errno
import os
import signal
from typing import Any, Callable, List, Mapping, Sequence, TypeVar, Union

Word = Union[str, bytes]
Started = TypeVar("Started")

SHELL = "/bin/sh"
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # what a shell answers
# Python ignores the first two; a shell that starts a node in the background, the next two; nohup, the last.
_NOT_INHERITED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
_TRY_NEXT = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)


def spawn(argv: Sequence[Word], env: Mapping[str, str], fds: Sequence[int]) -> int:
    """Start `argv` in a new session with stdin, stdout and stderr `fds` and nothing else open; its pid.

    The working directory, umask and limits are the agent's. Every descriptor of the agent closes on exec. Raises
    OSError: E2BIG, ENOENT, EACCES, ENOEXEC, or EAGAIN when there may be no further process.
    """
    return _spawn(argv, env, [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(fds)])


def spawn_on(argv: Sequence[Word], env: Mapping[str, str], terminal: str) -> int:
    """The same with a terminal as all three, which opening it in the new session makes the controlling one."""
    opening = (os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0)
    return _spawn(argv, env, [opening, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)])


def _spawn(argv: Sequence[Word], env: Mapping[str, str], actions: Sequence[Any]) -> int:
    def start(path: str) -> int:
        return os.posix_spawn(
            path, list(argv), env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_NOT_INHERITED
        )

    return _first(start, argv, env)


def explanation(argv: Sequence[Word], error: OSError) -> bytes:
    """What stderr says about a command that could not be started."""
    text = f"hotbed: cannot run {os.fsdecode(argv[0])[:256]!r}: {error.strerror}\n"
    return text.encode("utf-8", "surrogateescape")


def _first(start: Callable[[str], Started], argv: Sequence[Word], env: Mapping[str, str]) -> Started:
    """Start the first file of PATH that can be started, as execvp(3) chooses."""
    failure = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    paths = candidates(os.fsdecode(argv[0]), env.get("PATH", os.defpath))
    for path in paths:
        if len(paths) > 1 and not os.access(path, os.F_OK):  # an attempt costs a process number
            continue
        try:
            return start(path)
        except OSError as error:
            if error.errno not in _TRY_NEXT:
                raise
            if failure.errno != errno.EACCES:
                failure = error
    raise failure


def candidates(name: str, path: str) -> List[str]:
    """The files that a command name may mean, in the order of PATH."""
    if not name:
        return []  # posix_spawn would not take it
    if "/" in name:
        return [name]
    return [os.path.join(folder or ".", name) for folder in path.split(os.pathsep)]


def exit_code_of(error: OSError) -> int:
    """The exit code of a command that could not be started."""
    return NOT_FOUND if error.errno in (errno.ENOENT, errno.ENOTDIR) else NOT_EXECUTABLE
