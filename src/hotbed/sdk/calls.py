"""Every operation of a node as a value, before any I/O has happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote, urlencode

from hotbed.grading.verdicts import GradeResult
from hotbed.sdk.bodies import json_body, read_json
from hotbed.sdk.grade_lines import GradeLines, OnProgress
from hotbed.sdk.output_lines import OnOutput, OutputLines
from hotbed.sdk.results import Result, result_from_wire
from hotbed.wire import checks, routes
from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.execs import ExecRequest, RolloutRequest
from hotbed.wire.grading import GradeRequest
from hotbed.wire.health import Health
from hotbed.wire.ledger import GroupReplay, ReplayReport, RolloutDetail, RolloutList
from hotbed.wire.sandboxes import (
    CreateSandbox,
    Deleted,
    FileAnswer,
    FileOperation,
    FileVerb,
    FileWritten,
    SandboxCreated,
    SandboxList,
    SandboxRow,
    TreeWritten,
)

T = TypeVar("T")

ANSWER_TIMEOUT_S = 120.0
GRADE_WAIT_S = 60.0  # between two lines; the node says something every few seconds, however long a verdict takes
DELIVERY_GRACE_S = 60.0  # what a node may take around an exec: admission, fork, delivery of the output


class Sink(Protocol):
    """Where a streamed answer goes."""

    def write(self, data: bytes, /) -> object:
        """Take the next bytes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One operation. `read` turns the answer's body into what the caller gets.

    `timeout_s` bounds the whole of an ordinary call and each wait of a streaming one. `patience_s` is how long a call
    that was refused before anything ran is tried again. A call with an `upload` cannot be sent twice. `leased` names
    the client's lease, so that what it makes ends with the client. A `keyed` one is done once by a remote node, however
    often it is sent. `sandbox_id` is the sandbox the call is about, when
    it is one that we know to have existed.
    """

    method: str
    target: str
    read: Callable[[bytes], T]
    body: bytes = b""
    upload: Iterator[bytes] | None = None
    upload_length: int | None = None
    sink: Sink | None = None
    timeout_s: float = ANSWER_TIMEOUT_S
    patience_s: float = 30.0
    leased: bool = False
    keyed: bool = False
    sandbox_id: str | None = None

    @property
    def streams(self) -> bool:
        """Whether bytes of any length pass through."""
        return self.upload is not None or self.sink is not None

    @property
    def idempotent(self) -> bool:
        """Whether doing it twice is doing it once."""
        return self.method in ("GET", "DELETE") and self.sink is None


def read_as(kind: type[T], body: bytes) -> T:
    """An answer's body as a wire type."""
    return from_wire(kind, read_json(body))


def plain(route: routes.Route, kind: type[T], *, body: object = None, **segments: str) -> Call[T]:
    """A call that asks and answers in JSON."""
    return Call(
        method=route.method,
        target=route.url(**segments),
        read=partial(read_as, kind),
        body=json_body(to_wire(body)) if body is not None else b"",
    )


def health() -> Call[Health]:
    """Is the node there, and how busy is it."""
    return plain(routes.HEALTH, Health)


def capabilities() -> Call[Mapping[str, Any]]:
    """What the node's host allows, as `hotbed doctor` shows it."""
    return Call(method="GET", target=routes.CAPABILITIES.url(), read=read_json)


def stats() -> Call[Mapping[str, Any]]:
    """The node's counters."""
    return Call(method="GET", target=routes.STATS.url(), read=read_json)


def list_sandboxes() -> Call[tuple[SandboxRow, ...]]:
    """Every live sandbox of the caller."""

    def read(body: bytes) -> tuple[SandboxRow, ...]:
        return read_as(SandboxList, body).sandboxes

    return Call(method="GET", target=routes.LIST_SANDBOXES.url(), read=read)


def get_sandbox(sandbox_id: str) -> Call[SandboxRow]:
    """One live sandbox."""
    return plain(routes.GET_SANDBOX, SandboxRow, id=sandbox_id)


def create_sandbox(request: CreateSandbox) -> Call[SandboxCreated]:
    """Fork a template."""
    route = routes.CREATE_SANDBOX
    return Call(
        method=route.method,
        target=route.url(),
        read=partial(read_as, SandboxCreated),
        body=json_body(to_wire(request)),
        leased=True,
        keyed=True,
    )


def delete_sandbox(sandbox_id: str) -> Call[Deleted]:
    """End a sandbox and everything in it."""
    return plain(routes.DELETE_SANDBOX, Deleted, id=sandbox_id)


def exec_in(sandbox_id: str, request: ExecRequest, on_output: OnOutput | None = None) -> Call[Result]:
    """Run one thing in a sandbox; with `on_output`, hear of its output as it comes."""
    call = _run(routes.EXEC, routes.EXEC.url(id=sandbox_id), request, sandbox_id=sandbox_id)
    return _heard(call, on_output)


def rollout(request: RolloutRequest, on_output: OnOutput | None = None) -> Call[Result]:
    """Fork, run once, discard; with `on_output`, hear of its output as it comes."""
    return _heard(_run(routes.ROLLOUT, routes.ROLLOUT.path, request, leased=True), on_output)


def _heard(call: Call[Result], on_output: OnOutput | None) -> Call[Result]:
    if on_output is None:
        return call
    lines = OutputLines(on_output)
    return replace(call, sink=lines, read=lambda _: lines.result())


def _run(
    route: routes.Route,
    target: str,
    request: ExecRequest | RolloutRequest,
    *,
    leased: bool = False,
    sandbox_id: str | None = None,
) -> Call[Result]:
    return Call(
        method=route.method,
        target=target,
        read=_read_result,
        body=json_body(to_wire(request)),
        timeout_s=request.timeout_seconds + DELIVERY_GRACE_S,
        patience_s=request.timeout_seconds,
        leased=leased,
        keyed=not request.stream,
        sandbox_id=sandbox_id,
    )


def _read_result(body: bytes) -> Result:
    return result_from_wire(read_json(body))


def list_rollouts(*, limit: int, before: int | None, where: Mapping[str, str]) -> Call[RolloutList]:
    """A page of the ledger, newest first."""
    query = {"limit": limit, **({"before": before} if before is not None else {}), **where}
    target = f"{routes.LIST_ROLLOUTS.url()}?{urlencode(query)}"
    return Call(method="GET", target=target, read=partial(read_as, RolloutList))


def show_rollout(rollout_id: str) -> Call[RolloutDetail]:
    """One line of the ledger, whole."""
    return plain(routes.SHOW_ROLLOUT, RolloutDetail, id=rollout_id)


def replay(rollout_id: str, *, timeout_s: float) -> Call[ReplayReport]:
    """Run one again and compare."""
    return replace(plain(routes.REPLAY, ReplayReport, id=rollout_id), timeout_s=timeout_s, leased=True)


def replay_group(group_id: str, *, timeout_s: float) -> Call[GroupReplay]:
    """Run a group again and compare."""
    return replace(plain(routes.REPLAY_GROUP, GroupReplay, id=group_id), timeout_s=timeout_s, leased=True)


def grade(request: GradeRequest, on_progress: OnProgress | None = None) -> Call[list[GradeResult]]:
    """Grade a group. Each wait for the next verdict is bounded; how long the group takes is not."""
    lines = GradeLines(len(request.codes), on_progress)
    return Call(
        method=routes.GRADE.method,
        target=routes.GRADE.path,
        read=lambda _: lines.results(),
        body=json_body({**to_wire(request), "codes": list(request.codes)}),
        sink=lines,
        timeout_s=GRADE_WAIT_S,
        leased=True,
    )


def put_bytes(sandbox_id: str, path: str, data: str | bytes, *, mode: int = 0o644) -> Call[FileWritten]:
    """Write a file whose bytes are at hand."""
    body = data.encode() if isinstance(data, str) else bytes(data)
    return replace(put_file(sandbox_id, path, iter(()), len(body), mode=mode), upload=None, body=body)


def put_file(
    sandbox_id: str, path: str, data: Iterator[bytes], length: int | None, *, mode: int = 0o644
) -> Call[FileWritten]:
    """Write a file of any size. Its parents are made."""
    return Call(
        method=routes.PUT_FILE.method,
        target=f"{routes.PUT_FILE.url(id=sandbox_id)}?{_query(path)}&mode={_octal(mode)}&parents=1",
        read=partial(read_as, FileWritten),
        upload=data,
        upload_length=length,
        sandbox_id=sandbox_id,
    )


def get_file(sandbox_id: str, path: str, sink: Sink) -> Call[None]:
    """Stream a file out."""
    return Call(
        method=routes.GET_FILE.method,
        target=f"{routes.GET_FILE.url(id=sandbox_id)}?{_query(path)}",
        read=_nothing,
        sink=sink,
        sandbox_id=sandbox_id,
    )


def put_tree(sandbox_id: str, path: str, tar: Iterator[bytes]) -> Call[TreeWritten]:
    """Extract a tar stream below a directory of the sandbox."""
    return Call(
        method=routes.PUT_TREE.method,
        target=f"{routes.PUT_TREE.url(id=sandbox_id)}?{_query(path)}",
        read=partial(read_as, TreeWritten),
        upload=tar,
        sandbox_id=sandbox_id,
    )


def get_tree(sandbox_id: str, path: str, sink: Sink) -> Call[None]:
    """Stream a directory out as a tar."""
    return Call(
        method=routes.GET_TREE.method,
        target=f"{routes.GET_TREE.url(id=sandbox_id)}?{_query(path)}",
        read=_nothing,
        sink=sink,
        sandbox_id=sandbox_id,
    )


def files(sandbox_id: str, operation: FileVerb, path: str) -> Call[FileAnswer]:
    """Look at or change a sandbox's files."""
    request = FileOperation(operation=operation, path=path)
    return replace(plain(routes.FILE_OPERATION, FileAnswer, body=request, id=sandbox_id), sandbox_id=sandbox_id)


def _query(path: str) -> str:
    checks.require_path(path)
    return f"path={quote(path.encode('utf-8', 'surrogateescape'), safe='/')}"


def _octal(mode: int) -> str:
    checks.require(isinstance(mode, int), f"mode {mode!r} is not a number", hint="such as mode=0o755")
    return f"{mode:o}"


def _nothing(body: bytes) -> None:
    return None
