"""Operations on jobs, ports and groups of sandboxes as values."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeVar

from hotbed.sdk.bodies import json_body, read_json
from hotbed.sdk.calls import ANSWER_TIMEOUT_S, Call
from hotbed.sdk.results import Result, result_from_wire
from hotbed.wire import routes
from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.execs import ExecRequest
from hotbed.wire.jobs import JobList, JobOutput, JobRow, SignalJob
from hotbed.wire.sandboxes import Deleted, SandboxesDeleted, Selector
from hotbed.wire.tunnels import ConnectUrl, ConnectUrlRequest

T = TypeVar("T")


def _call(route: routes.Route, kind: type[T], *, body: object = None, query: str = "", **segments: str) -> Call[T]:
    return Call(
        method=route.method,
        target=route.url(**segments) + query,
        read=partial(_read, kind),
        body=json_body(to_wire(body)) if body is not None else b"",
        sandbox_id=segments.get("id"),
    )


def _read(kind: type[T], body: bytes) -> T:
    return from_wire(kind, read_json(body))


def start_job(sandbox_id: str, request: ExecRequest) -> Call[JobRow]:
    """Run one thing in the background."""
    return _call(routes.START_JOB, JobRow, body=request, id=sandbox_id)


def list_jobs(sandbox_id: str) -> Call[tuple[JobRow, ...]]:
    """Those that are remembered."""
    plain = _call(routes.LIST_JOBS, JobList, id=sandbox_id)
    return Call(
        method=plain.method, target=plain.target, read=lambda body: plain.read(body).jobs, sandbox_id=sandbox_id
    )


def get_job(sandbox_id: str, job_id: str, *, wait_s: float = 0.0) -> Call[JobRow]:
    """One, at once or when it has ended."""
    call = _call(routes.GET_JOB, JobRow, query=f"?wait_s={wait_s:.3f}", id=sandbox_id, job=job_id)
    return _of_job(call, wait_s)


def job_output(sandbox_id: str, job_id: str, *, since: int, wait_s: float) -> Call[JobOutput]:
    """What it printed from an offset on."""
    query = f"?since={since}&wait_s={wait_s:.3f}"
    return _of_job(_call(routes.JOB_OUTPUT, JobOutput, query=query, id=sandbox_id, job=job_id), wait_s)


def signal_job(sandbox_id: str, job_id: str, number: int) -> Call[JobRow]:
    """Signal its process group."""
    return _of_job(_call(routes.SIGNAL_JOB, JobRow, body=SignalJob(signal=number), id=sandbox_id, job=job_id))


def delete_job(sandbox_id: str, job_id: str) -> Call[Deleted]:
    """Kill and forget it."""
    return _of_job(_call(routes.DELETE_JOB, Deleted, id=sandbox_id, job=job_id))


def _of_job(call: Call[T], wait_s: float = 0.0) -> Call[T]:
    """What is not found may be the job; that the sandbox is gone, the node says itself."""
    return replace(call, sandbox_id=None, timeout_s=ANSWER_TIMEOUT_S + wait_s)


def result_of(row: JobRow) -> Result:
    """The result of a job that has ended."""
    assert row.result is not None, "it has ended"
    return result_from_wire(to_wire(row.result))


def connect_url(sandbox_id: str, request: ConnectUrlRequest) -> Call[ConnectUrl]:
    """An address that opens one port."""
    return _call(routes.CONNECT_URL, ConnectUrl, body=request, id=sandbox_id)


def delete_sandboxes(selector: Selector) -> Call[tuple[str, ...]]:
    """End all that a selector means."""
    plain = _call(routes.DELETE_SANDBOXES, SandboxesDeleted, body=selector)
    return Call(method=plain.method, target=plain.target, read=lambda body: plain.read(body).ids, body=plain.body)
