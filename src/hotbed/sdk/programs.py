"""What a caller asks to run, as a checked wire request. Every mistake that can be seen here is named before any I/O."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from hotbed.errors import InvalidRequest
from hotbed.wire.checks import egress_object, require, seed_text
from hotbed.wire.execs import TIMEOUT_LIMIT_S, ExecRequest, FileSpec, RolloutRequest
from hotbed.wire.processes import ProcessRequest, Terminal

Seed = str | int | bytes
EgressPolicy = str | Mapping[str, Any]
Text = str | bytes
Files = Mapping[str, Text] | Iterable[Mapping[str, Any]]
Determinism = Literal["none", "rng", "full"]
Level = Literal["fake", "process", "fork", "gvisor", "vm"]

_FILES_HINT = 'give {"/work/name": text or bytes}, or a list of {"path": ..., "content": ..., "mode": ...}'
_KINDS_HINT = "give one of code=, command= and commands="


def exec_request(**given: Any) -> ExecRequest:
    """The wire form of one exec."""
    return ExecRequest(**_run_fields(**given))


def rollout_request(
    template: str,
    *,
    limits: Mapping[str, float] | None,
    min_isolation: Level | None,
    egress: EgressPolicy | None = None,
    group_id: str = "",
    **given: Any,
) -> RolloutRequest:
    """The wire form of one rollout."""
    require(isinstance(template, str), f"template must be a name, not {template!r}", "built-in: python, python-numpy")
    return RolloutRequest(
        template=template,
        limits=limits,
        min_isolation=min_isolation,
        egress=egress_object(egress),
        labels={"group_id": group_id} if group_id else {},
        **_run_fields(**given),
    )


def process_request(
    *, timeout_seconds: float | None, terminal: tuple[int, int] | None = None, stdin: Text | None = None, **given: Any
) -> ProcessRequest:
    """The wire form of what is talked to, or not waited for."""
    size = None
    if terminal is not None:
        require(len(terminal) == 2, f"terminal must be (rows, columns), not {terminal!r}")
        size = Terminal(rows=terminal[0], columns=terminal[1])
    timeout = TIMEOUT_LIMIT_S if timeout_seconds is None else timeout_seconds
    return ProcessRequest(terminal=size, **_run_fields(timeout_seconds=timeout, seed=None, stdin=stdin, **given))


def _run_fields(
    *,
    code: Text | None,
    command: Text | None,
    commands: Sequence[Sequence[str]] | None,
    args: Sequence[str],
    files: Files | None,
    stdin: Text | None,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    timeout_seconds: float,
    seed: Seed | None,
    **plain: Any,
) -> dict[str, Any]:
    _one_kind(code, command, commands)
    fields = dict(plain)
    _put_text(fields, "code", code)
    _put_text(fields, "command", command)
    _put_text(fields, "stdin", stdin)
    if commands is not None:
        fields["commands"] = tuple(_argv(item, f"commands[{index}]") for index, item in enumerate(commands))
        require(bool(fields["commands"]), "commands is empty", 'give argument lists: [["echo", "hi"], ...]')
    if args:
        fields["args"] = _argv(args, "args")
    if files:
        fields["files"] = file_specs(files)
    if env:
        fields["env"] = _variables(env)
    if cwd is not None:
        fields["cwd"] = os.fspath(cwd)
    if seed is not None:
        fields["seed"] = seed_text(seed)
    fields["timeout_seconds"] = timeout_seconds
    return fields


def _one_kind(code: object, command: object, commands: object) -> None:
    kinds = {"code": code, "command": command, "commands": commands}
    given = [name for name, value in kinds.items() if value is not None]
    require(bool(given), "nothing to run was given", _KINDS_HINT)
    require(len(given) == 1, f"{' and '.join(given)} were given together", _KINDS_HINT)


def _put_text(fields: dict[str, Any], name: str, value: Text | None) -> None:
    """Text goes as text, bytes as base64."""
    if value is None:
        return
    if isinstance(value, (bytes, bytearray, memoryview)):
        fields[f"{name}_b64"] = bytes(value)
    else:
        require(isinstance(value, str), f"{name} must be str or bytes, not {type(value).__name__}")
        fields[name] = value


def _argv(words: Sequence[str], name: str) -> tuple[str, ...]:
    if isinstance(words, (str, bytes)):
        raise InvalidRequest(
            f"{name} is one string, not a list of arguments", hint='give ["python3", "task.py"], or use command='
        )
    found = tuple(os.fspath(word) if isinstance(word, os.PathLike) else word for word in words)
    for word in found:
        require(isinstance(word, str), f"{name} holds {word!r}, which is not text")
        require("\0" not in word, f"{name} holds a NUL character", "arguments of a program cannot: use a file or stdin")
    return found


def _variables(env: Mapping[str, str]) -> dict[str, str]:
    for name, value in env.items():
        require(isinstance(name, str) and isinstance(value, str), f"env {name!r}={value!r} is not text on both sides")
        usable = name != "" and "=" not in name and "\0" not in name + value
        require(usable, f"env {name!r} cannot be set", "a name is not empty and holds no '='; neither side holds a NUL")
    return dict(env)


def file_specs(files: Files) -> tuple[FileSpec, ...]:
    """Files in either of the forms that callers use."""
    if isinstance(files, Mapping):
        return tuple(_spec(os.fspath(path), content, 0o644) for path, content in files.items())
    require(not isinstance(files, (str, bytes)), "files is one string", _FILES_HINT)
    found = []
    for item in files:
        require(isinstance(item, Mapping) and "path" in item, f"files holds {item!r}", _FILES_HINT)
        require("content" in item, f"files: {item['path']} has no content", _FILES_HINT)
        found.append(_spec(os.fspath(item["path"]), item["content"], item.get("mode", 0o644)))
    return tuple(found)


def _spec(path: str, content: object, mode: int) -> FileSpec:
    if isinstance(content, str):
        return FileSpec(path=path, content=content, mode=mode)
    if isinstance(content, (bytes, bytearray, memoryview)):
        return FileSpec(path=path, content_b64=bytes(content), mode=mode)
    raise InvalidRequest(f"files: the content of {path} is {type(content).__name__}", hint="give str or bytes")
