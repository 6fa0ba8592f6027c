"""The shapes of the published `collimate-rl` 0.8.0 client, and how they map to ours. Pure.

Two wires. The *daemon* says session, `session_id` and `template_id`, and reads errors as `error` (text) and
`error_code`. The *gateway* says sandbox, `id` and `template`, and reads errors as `message` and `code`. Both read one
merged `stdout` and an empty `stderr`, raise on a null where they expect a number, and ignore fields they do not know.

Their requests are read leniently, as the published servers do: an unset timeout is 30 s, a relative file path is below
the working directory, and of several programs `command` wins, then `commands`, then `code`. What asks for something
that a sandbox here does not have (secrets) is refused in words, since to ignore it would be to pretend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hotbed.errors import Error, InvalidRequest
from hotbed.wire.checks import egress_object, require
from hotbed.wire.execs import ExecRequest, ExecResponse, FileSpec, RolloutRequest
from hotbed.wire.live import SandboxForked, SandboxState
from hotbed.wire.sandboxes import CreateSandbox, SandboxCreated, SandboxRow

DEFAULT_TIMEOUT_S = 30.0
WORKING_DIRECTORY = "/work"
TEMPLATES = {"py": "python"}  # what the client's trainer hooks ask for when nobody says
SESSION, SANDBOX = "sess_", "sbx_"
KILLED = {
    "oom": "killed: it used more memory than it may",
    "pids": "killed: it made more processes than it may",
    "disk": "killed: its disk is full",
    "output": "killed: it printed more than it may",
}
DAEMON_CODES = {
    "invalid_request": ("bad_request", 400),
    "bad_path": ("bad_request", 400),
    "unknown_template": ("no_template", 404),
    "at_capacity": ("at_capacity", 503),
    "quota_exceeded": ("at_capacity", 503),
    "tier_limit": ("quota_exceeded", 403),
    "sandbox_failed": ("session_bringup_failed", 503),
    "template_failed": ("session_bringup_failed", 503),
    "internal": ("internal_error", 500),
}
GATEWAY_CODES = {
    "invalid_request": ("bad_request", 400),
    "bad_path": ("bad_request", 400),
    "unknown_template": ("not_found", 404),
    "session_gone": ("not_found", 404),
    "tier_limit": ("quota_exceeded", 403),
    "at_capacity": ("at_capacity", 503),
    "sandbox_failed": ("upstream_error", 502),
    "template_failed": ("upstream_error", 502),
    "internal": ("internal_error", 500),
}


def error_body(error: Error, codes: Mapping[str, tuple[str, int]]) -> tuple[dict[str, Any], int]:
    """An error as one of the wires says it, in both envelopes, and its HTTP status."""
    code, status = codes.get(error.code, (error.code, error.status))
    body = error.to_wire()
    text = f"{error.message or error.code} ({error.hint})" if error.hint else error.message or error.code
    body.update(error=text, message=text, error_code=code, code=code)
    return body, status


def outer_id(prefix: str, own_id: str) -> str:
    """Our id of a sandbox as a wire names it."""
    return f"{prefix}{own_id}"


def inner_id(prefix: str, given: str) -> str:
    """Our id behind a name; our own is taken too."""
    return given.removeprefix(prefix)


def create_request(body: Mapping[str, Any], *, template_field: str) -> CreateSandbox:
    """A sandbox to keep."""
    template = template_of(body, template_field)
    require(template != "", f"{template_field} is required")
    labels = body.get("labels") or {}
    require(isinstance(labels, dict), "labels must be an object of strings")
    return CreateSandbox(
        template=template,
        label=_text(body, "label") or None,
        egress=egress_of(body),
        labels={str(name): str(value) for name, value in labels.items()},
    )


def exec_request(body: Mapping[str, Any]) -> ExecRequest:
    """One exec in a sandbox that is kept."""
    return ExecRequest(**_run_fields(body))


def rollout_request(body: Mapping[str, Any]) -> RolloutRequest:
    """One exec in a sandbox of its own."""
    return RolloutRequest(template=template_of(body, "template_id"), egress=egress_of(body), **_run_fields(body))


def template_of(body: Mapping[str, Any], template_field: str) -> str:
    """The template that a body names, in our words."""
    named = _text(body, template_field)
    return TEMPLATES.get(named, named)


def egress_of(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A body's policy, with the secrets that it names beside it: alone, they allow the hosts that they are for."""
    policy, names = egress_object(body.get("egress")), body.get("secret_refs")
    return {**(policy or {}), "secret_refs": names} if names else policy


def _run_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    timeout = body.get("timeout_seconds") or DEFAULT_TIMEOUT_S
    require(_is_number(timeout), f"timeout_seconds must be a number, not {timeout!r}")
    seed = body.get("seed")
    return {
        **_program(body),
        "files": _files(body.get("files") or ()),
        "timeout_seconds": float(timeout),
        "cwd": WORKING_DIRECTORY,
        "seed": None if seed is None else str(seed),
    }


def _program(body: Mapping[str, Any]) -> dict[str, Any]:
    for name in ("command", "commands", "code"):
        given = body.get(name)
        if given is None:
            continue
        if name == "commands":
            return {"commands": _argument_lists(given)}
        require(isinstance(given, str), f"{name} must be text")
        return _text_field(name, given)
    raise InvalidRequest("nothing to run", hint="give one of command, commands or code")


def _argument_lists(given: object) -> tuple[tuple[str, ...], ...]:
    lists = given if isinstance(given, list) else []
    good = all(isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv) for argv in lists)
    require(bool(lists) and good, 'commands must be a list of argument lists, such as [["bash", "-lc", "ls"]]')
    return tuple(tuple(argv) for argv in lists)


def _files(given: object) -> tuple[FileSpec, ...]:
    require(isinstance(given, Sequence), "files must be a list")
    assert isinstance(given, Sequence)
    return tuple(_file(item) for item in given)


def _file(item: object) -> FileSpec:
    known = item if isinstance(item, dict) else {}
    path, content = known.get("path"), known.get("content", "")
    require(isinstance(path, str) and path != "" and isinstance(content, str), "files: each has a path and its content")
    full = path if str(path).startswith("/") else f"{WORKING_DIRECTORY}/{path}"
    return FileSpec(path=str(full), **_text_field("content", content))


def _text_field(name: str, text: str) -> dict[str, Any]:
    """Text under its name; where JSON brought half of a surrogate pair, its bytes under the sibling's."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return {f"{name}_b64": text.encode("utf-8", "surrogatepass")}
    return {name: text}


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name) or ""
    require(isinstance(value, str), f"{name} must be text, not {value!r}")
    return str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def exec_answer(answer: ExecResponse, *, timeout_s: float) -> dict[str, Any]:
    """What ran: one merged stream, no nulls; `status`, `truncated` and `isolation` are ours."""
    trace = {"traceparent": answer.traceparent} if answer.traceparent else {}
    return {
        "id": answer.id,
        "stdout": _decoded(merged(answer)) + _verdict(answer, timeout_s),
        "stderr": "",
        "exit_code": _exit_code(answer),
        "fork_time_ms": answer.fork_time_ms,
        "exec_time_ms": answer.exec_time_ms,
        "total_time_ms": answer.total_time_ms,
        "seed": answer.seed,
        "seed_ack": answer.seed_ack,
        "status": answer.status,
        "truncated": answer.truncated,
        "isolation": answer.isolation,
        **trace,
    }


def merged(answer: ExecResponse) -> bytes:
    """Both streams in the order in which they were printed."""
    left = {1: answer.stdout_bytes, 2: answer.stderr_bytes}
    pieces = []
    for stream, length in answer.order:
        pieces.append(left[stream][:length])
        left[stream] = left[stream][length:]
    return b"".join((*pieces, left[1], left[2]))


def _verdict(answer: ExecResponse, timeout_s: float) -> str:
    """Why it was killed, as the last line: nothing it printed before counts as its last word."""
    what = f"timeout after {timeout_s:g}s" if answer.status == "timeout" else KILLED.get(answer.status, "")
    return f"\n{what}" if what and answer.stdout_total + answer.stderr_total else what


def _exit_code(answer: ExecResponse) -> int:
    if answer.status == "signal" and answer.signal:
        return 128 + answer.signal
    return answer.exit_code


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def session_created(made: SandboxCreated) -> dict[str, Any]:
    """A session on the daemon's wire."""
    return {
        "session_id": outer_id(SESSION, made.id),
        "template_id": made.template_id,
        "fork_time_ms": made.fork_time_ms,
        "create_time_ms": made.create_time_ms,
    }


def session_row(row: SandboxRow) -> dict[str, Any]:
    """A session as listed on the daemon's wire."""
    return {
        "session_id": outer_id(SESSION, row.id),
        "template_id": row.template_id,
        "age_secs": row.age_s,
        "idle_secs": row.idle_s,
        "exec_count": row.exec_count,
    }


def sandbox_created(made: SandboxCreated) -> dict[str, Any]:
    """A sandbox on the gateway's wire."""
    return {
        "id": outer_id(SANDBOX, made.id),
        "template": made.template,
        "template_id": made.template_id,
        "state": made.state,
        "fork_time_ms": made.fork_time_ms,
        "create_time_ms": made.create_time_ms,
        "isolation": made.isolation,
    }


def sandbox_forked(made: SandboxForked) -> dict[str, Any]:
    """A fork's children on the gateway's wire; `skipped` is ours."""
    return {
        "parent": outer_id(SANDBOX, made.parent),
        "children": [sandbox_created(child) for child in made.children],
        "skipped": list(made.skipped),
    }


def sandbox_state(state: SandboxState) -> dict[str, Any]:
    """Suspended or not, on the gateway's wire."""
    return {"id": outer_id(SANDBOX, state.id), "state": state.state, "how": state.how}


def sandbox_row(row: SandboxRow) -> dict[str, Any]:
    """A sandbox as listed on the gateway's wire."""
    return {
        "id": outer_id(SANDBOX, row.id),
        "template": row.template,
        "template_id": row.template_id,
        "state": row.state,
        "created_at": row.created_at,
        "age_secs": row.age_s,
        "idle_secs": row.idle_s,
        "exec_count": row.exec_count,
        "label": row.label,
        "labels": dict(row.labels),
        "isolation": row.isolation,
    }
