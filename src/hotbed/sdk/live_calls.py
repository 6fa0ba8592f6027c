"""Live operations on sandboxes as values, before any I/O has happened."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from hotbed.sdk.bodies import json_body, read_json
from hotbed.sdk.calls import Call
from hotbed.wire import routes
from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.live import ForkSandbox, SandboxForked, SandboxState, SnapshotSandbox
from hotbed.wire.snapshots import SnapshotRow

T = TypeVar("T")

COPY_TIMEOUT_S = 300.0


def fork(sandbox_id: str, request: ForkSandbox) -> Call[SandboxForked]:
    """Fork a sandbox."""
    return _about(routes.FORK_SANDBOX, sandbox_id, SandboxForked, request)


def snapshot(sandbox_id: str, *, end: bool) -> Call[SnapshotRow]:
    """Keep a sandbox's files."""
    return _about(routes.SNAPSHOT_SANDBOX, sandbox_id, SnapshotRow, SnapshotSandbox(end=end))


def suspend(sandbox_id: str) -> Call[SandboxState]:
    """Hold a sandbox still."""
    return _about(routes.SUSPEND_SANDBOX, sandbox_id, SandboxState)


def resume(sandbox_id: str) -> Call[SandboxState]:
    """Let it go on."""
    return _about(routes.RESUME_SANDBOX, sandbox_id, SandboxState)


def _about(route: routes.Route, sandbox_id: str, reply: type[T], request: object = None) -> Call[T]:
    return Call(
        method=route.method,
        target=route.url(id=sandbox_id),
        read=partial(_read, reply),
        body=json_body(to_wire(request)) if request is not None else b"",
        timeout_s=COPY_TIMEOUT_S,
        sandbox_id=sandbox_id,
    )


def _read(kind: type[T], body: bytes) -> T:
    return from_wire(kind, read_json(body))
