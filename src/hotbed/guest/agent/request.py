"""An exec request as it arrives: a header to check, and a body to cut into program, files and stdin."""

from __future__ import annotations

import errno
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .terminal import size_of

_CODES = {
    errno.ENOENT: "not_found",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "too_large",
    errno.EISDIR: "not_a_file",
    errno.ENXIO: "not_a_file",
    errno.ENOTDIR: "bad_path",
    errno.ELOOP: "bad_path",
    errno.ENAMETOOLONG: "bad_path",
    errno.EINVAL: "bad_path",
    errno.EEXIST: "exists",
    errno.ENOTEMPTY: "not_empty",
    errno.EMFILE: "busy",
    errno.ENFILE: "busy",
    errno.EAGAIN: "busy",
    errno.ETOOMANYREFS: "busy",  # so many descriptors of one user are on their way between processes
    errno.ENOMEM: "busy",
}


class Refused(Exception):
    """A request that is answered with an error frame."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def refusal(error: OSError, doing: str) -> Refused:
    """An operating system error as a refusal."""
    return Refused(_CODES.get(error.errno or 0, "failed"), f"{doing}: {error.strerror or error}")


class ExecRequest(NamedTuple):
    """One exec, checked."""

    id: str
    kind: str
    program: bytes
    argv: Sequence[Sequence[str]]
    args: Sequence[str]
    files: Sequence[Tuple[str, bytes, int]]
    stdin: bytes
    env: Mapping[str, str]
    cwd: Optional[str]
    timeout_s: float
    output_bytes: int
    output_kill_bytes: int
    keep_going: bool
    stream: bool
    stdin_open: bool
    pin: Optional[str] = None
    ahead: bool = False  # a spare put on its filter before
    last: bool = False
    window: int = 0
    terminal: Optional[Tuple[int, int]] = None


def parse(header: Dict[str, Any], body: bytes) -> ExecRequest:
    """Check a header and cut its body. Raises `Refused`."""
    get = header.get
    sizes = [_whole(get("program", 0), "program")]
    files = get("files") or []
    sizes += [_whole(item[1], "file size") for item in files]
    sizes.append(_whole(get("stdin", 0), "stdin"))
    program, *contents, stdin = _cut(body, sizes)
    return ExecRequest(
        id=_one(get("id"), str, "id"),
        kind=_kind(get("kind")),
        program=program,
        argv=_argv(get("argv") or []) if get("kind") == "commands" else [],
        args=texts(get("args") or [], "args"),
        files=[(_text(f[0], "path"), data, _whole(f[2], "mode")) for f, data in zip(files, contents)],
        stdin=stdin,
        env=variables(get("env") or {}),
        cwd=None if get("cwd") is None else _text(get("cwd"), "cwd"),
        timeout_s=float(get("timeout_s", 60.0)),
        output_bytes=_whole(get("output_bytes", 16 << 20), "output_bytes"),
        output_kill_bytes=_whole(get("output_kill_bytes", 8 << 30), "output_kill_bytes"),
        keep_going=bool(get("keep_going")),
        stream=bool(get("stream")),
        stdin_open=bool(get("stdin_open")),
        pin=pin_of(header),
        ahead=bool(get("ahead")),
        last=bool(get("last")),
        window=_whole(get("window", 0), "window"),
        terminal=_terminal(header),
    )


def texts(items: Sequence[Any], name: str) -> List[str]:
    """A list of strings for a program. Raises `Refused`."""
    return [_text(item, name) for item in items]


def variables(env: Mapping[Any, Any]) -> Dict[str, str]:
    """Environment variables. Raises `Refused`."""
    return {_variable(name): _text(value, "env") for name, value in env.items()}


def pin_of(header: Mapping[str, Any]) -> Optional[str]:
    """The level at which the program is to be pinned, if it is; a channel to the supervisor came along then."""
    pin = header.get("pin")
    if pin not in (None, "rng", "full"):
        raise Refused("bad_request", f"pin is rng or full, not {pin!r:.64}")
    return pin


def _terminal(header: Mapping[str, Any]) -> Optional[Tuple[int, int]]:
    wanted = header.get("terminal")
    if wanted is None:
        return None
    alone = header.get("kind") == "command" or len(header.get("argv") or ()) == 1
    if not alone or header.get("pin") is not None:
        raise Refused("bad_request", "a terminal is for one command, and not for one that is pinned")
    try:
        return size_of(wanted)
    except ValueError as error:
        raise Refused("bad_request", str(error)) from None


def _cut(body: bytes, sizes: List[int]) -> List[bytes]:
    if sum(sizes) != len(body):
        raise Refused("bad_request", f"the parts add up to {sum(sizes)} bytes, the body has {len(body)}")
    if sizes[0] == len(body):
        return [body] + [b""] * (len(sizes) - 1)
    parts, at = [], 0
    for size in sizes:
        parts.append(body[at : at + size])
        at += size
    return parts


def _kind(kind: object) -> str:
    if kind not in ("code", "command", "commands"):
        raise Refused("bad_request", f"kind is code, command or commands, not {kind!r}")
    return str(kind)


def _argv(commands: Any) -> List[List[str]]:
    if type(commands) is not list or not commands or not all(type(c) is list and c for c in commands):
        raise Refused("bad_request", "argv must be a list of non-empty lists")
    return [[_text(word, "argv") for word in command] for command in commands]


def _text(value: Any, name: str) -> str:
    text: str = _one(value, str, name)
    if "\0" in text:
        raise Refused("bad_request", f"{name} holds a NUL character")
    return text


def _variable(name: Any) -> str:
    if not name or "=" in _text(name, "env"):
        raise Refused("bad_request", f"{name!r:.64} cannot be an environment variable")
    return str(name)


def _whole(value: Any, name: str) -> int:
    number: int = _one(value, int, name)
    if number < 0:
        raise Refused("bad_request", f"{name} must not be negative")
    return number


def _one(value: Any, kind: type, name: str) -> Any:
    if type(value) is not kind:
        raise Refused("bad_request", f"{name} must be {kind.__name__}, not {type(value).__name__}")
    return value
