"""Jobs: started, listed, looked at, read from an offset, signalled and killed."""

from __future__ import annotations

from hotbed.errors import NotFound
from hotbed.node.jobs import Job
from hotbed.node.node import Node
from hotbed.node.processes import start_job
from hotbed.node.sessions import Session
from hotbed.server.operation import Call
from hotbed.wire.checks import require
from hotbed.wire.jobs import JobList, JobOutput, JobRow
from hotbed.wire.sandboxes import Deleted


async def start(node: Node, call: Call) -> JobRow:
    """Start one."""
    return start_job(node, session_of(node, call), call.body).row()


async def listing(node: Node, call: Call) -> JobList:
    """All that are remembered."""
    return JobList(jobs=tuple(job.row() for job in session_of(node, call).jobs))


async def get(node: Node, call: Call) -> JobRow:
    """One; with `wait_s`, as soon as it has ended."""
    job = job_of(node, call)
    await job.wait_end(_number(call, "wait_s", 0.0))
    return job.row()


async def output(node: Node, call: Call) -> JobOutput:
    """What it printed from an offset on; with `wait_s`, as soon as there is something."""
    job = job_of(node, call)
    since = int(_number(call, "since", 0.0))
    await job.wait_news(since, _number(call, "wait_s", 0.0))
    return job.output(since)


async def signal(node: Node, call: Call) -> JobRow:
    """Signal its process group. To one that has ended, nothing happens."""
    job = job_of(node, call)
    if job.running is not None:
        job.running.signal(call.body.signal)
    return job.row()


async def delete(node: Node, call: Call) -> Deleted:
    """Kill it, wait for its end and forget it. Doing it again is no error."""
    session = session_of(node, call)
    try:
        job = session.jobs.get(call.segment("job"))
    except NotFound:
        return Deleted(id=call.segment("job"))
    await job.end()
    session.jobs.forget(job)
    return Deleted(id=job.id)


def session_of(node: Node, call: Call) -> Session:
    """The sandbox that a path names."""
    return node.sessions.get(call.segment("id"))


def job_of(node: Node, call: Call) -> Job:
    """The job that a path names."""
    return session_of(node, call).jobs.get(call.segment("job"))


def _number(call: Call, name: str, default: float) -> float:
    text = call.request.query_params.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    require(0 <= value < 1 << 53, f"{name} must be a number from 0 on, not {text[:32]!r}")
    return value
