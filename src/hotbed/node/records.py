"""From what was asked and answered to a line of the ledger, and back. Pure."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timezone
from typing import Any

import msgspec

from hotbed.grading.verdicts import GradeResult
from hotbed.node.ledger.entry import Entry, EntryKind
from hotbed.node.ledger.store import Store
from hotbed.node.seeding import level_of
from hotbed.wire.execs import ExecRequest, ExecResponse, RolloutRequest, text_or_bytes
from hotbed.wire.ledger import RolloutDetail, RolloutRow
from hotbed.wire.sandboxes import CreateSandbox, SandboxCreated

PUT_LIMIT = 8 << 20  # a file put into a sandbox is kept up to this size

_encode = msgspec.json.Encoder().encode


def of_rollout(request: RolloutRequest, answer: ExecResponse, *, at: float) -> Entry:
    """A one-shot rollout."""
    return _of_answer(request, answer, kind="rollout", at=at, group_id=group_of(request), label=request.label or "")


def of_exec(
    request: ExecRequest, answer: ExecResponse, *, sandbox_id: str, label: str, at: float, kind: EntryKind = "exec"
) -> Entry:
    """An exec in a sandbox that is kept, or a process that was talked to."""
    return _of_answer(request, answer, kind=kind, at=at, sandbox_id=sandbox_id, label=label)


def of_grade(result: GradeResult, details: dict[str, Any], **known: Any) -> Entry:
    """A verdict, with what its candidate printed as far as that is known."""
    stdout, stderr = (str(result.sandbox.get(name, "")).encode("utf-8", "replace") for name in ("stdout", "stderr"))
    return Entry(
        kind="grade",
        seed_ack=result.seed_ack,
        isolation=str(result.sandbox.get("isolation", "")),
        status=result.status,
        reward=result.reward,
        stdout=stdout,
        stderr=stderr,
        stdout_total=len(stdout),
        stderr_total=len(stderr),
        fork_ms=float(result.sandbox.get("fork_time_ms", 0.0)),
        total_ms=float(result.timings.get("total_ms", 0.0)),
        details=details,
        **known,
    )


def told(entry: Entry, *, tenant: str, trace: str) -> Entry:
    """An entry with whose it is, and the trace of the request that it came by."""
    if not tenant and not trace:
        return entry
    details = {**entry.details, "traceparent": trace} if trace else entry.details
    return dataclasses.replace(entry, tenant=tenant, details=details)


def of_create(request: CreateSandbox, answer: SandboxCreated, *, digest: str, at: float, parent: str = "") -> Entry:
    """The birth of a sandbox that is kept: its replay begins there, or where its parent's does."""
    return Entry(
        id=f"create_{answer.id}",
        kind="create",
        at=at,
        template=answer.template,
        template_digest=digest,
        request=_encode(request),
        seed=answer.seed,
        determinism=level_of(request),
        isolation=answer.isolation,
        fork_ms=answer.fork_time_ms,
        total_ms=answer.create_time_ms,
        sandbox_id=answer.id,
        label=request.label or "",
        details={"parent": parent} if parent else {},
    )


def of_put(
    sandbox_id: str, template: str, digest: str, *, put_id: str, put: dict[str, Any], data: bytes | None, at: float
) -> Entry:
    """A file or a tree put into a sandbox. `data` is None when it was too large to keep."""
    return Entry(
        id=put_id,
        kind="put",
        at=at,
        template=template,
        template_digest=digest,
        request=_encode({**put, "kept": data is not None}),
        stdout=data or b"",
        sandbox_id=sandbox_id,
    )


def of_policy(sandbox_id: str, template: str, digest: str, *, policy_id: str, egress: Any, at: float) -> Entry:
    """Another policy of a living sandbox: what runs there later is run again under it."""
    return Entry(
        id=policy_id,
        kind="policy",
        at=at,
        template=template,
        template_digest=digest,
        request=_encode({"egress": egress}),
        sandbox_id=sandbox_id,
    )


def row_of(found: dict[str, Any]) -> RolloutRow:
    """A database row as the wire tells it."""
    names = {item.name for item in dataclasses.fields(RolloutRow)} - {"at"}
    moment = datetime.fromtimestamp(found["at"], timezone.utc).isoformat(timespec="milliseconds")
    return RolloutRow(at=moment.replace("+00:00", "Z"), **{name: found[name] for name in names})


def detail_of(found: dict[str, Any], store: Store) -> RolloutDetail:
    """A database row with its blobs."""
    stdout, stdout_b64 = text_or_bytes(store.blob(found["stdout_hash"]))
    stderr, stderr_b64 = text_or_bytes(store.blob(found["stderr_hash"]))
    return RolloutDetail(
        row=row_of(found),
        request=msgspec.json.decode(store.blob(found["request_hash"]) or b"{}"),
        stdout=stdout,
        stderr=stderr,
        stdout_b64=stdout_b64,
        stderr_b64=stderr_b64,
        details=found["details"],
    )


def answer_of(found: dict[str, Any], store: Store) -> ExecResponse:
    """What was answered then, as far as a replay compares it."""
    stdout, stdout_b64 = text_or_bytes(store.blob(found["stdout_hash"]))
    stderr, stderr_b64 = text_or_bytes(store.blob(found["stderr_hash"]))
    return ExecResponse(
        id=found["id"],
        status=found["status"],
        ok=found["status"] == "ok",
        exit_code=found["exit_code"],
        signal=found["signal"],
        stdout=stdout,
        stderr=stderr,
        stdout_b64=stdout_b64,
        stderr_b64=stderr_b64,
    )


def _of_answer(request: ExecRequest, answer: ExecResponse, **known: Any) -> Entry:
    return Entry(
        id=answer.id,
        template=answer.template,
        template_digest=answer.template_digest,
        request=_encode(request),
        seed=answer.seed,
        determinism=level_of(request),
        seed_ack=answer.seed_ack,
        isolation=answer.isolation,
        status=answer.status,
        exit_code=answer.exit_code,
        signal=answer.signal,
        stdout=answer.stdout_bytes,
        stderr=answer.stderr_bytes,
        stdout_total=answer.stdout_total,
        stderr_total=answer.stderr_total,
        fork_ms=answer.fork_time_ms,
        exec_ms=answer.exec_time_ms,
        total_ms=answer.total_time_ms,
        details={"pinned": list(answer.pinned)} if answer.pinned else {},
        **known,
    )


def group_of(request: RolloutRequest) -> str:
    return request.labels.get("group_id", "")
