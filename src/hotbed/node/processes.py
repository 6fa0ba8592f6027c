"""Execs that nobody just waits for: processes that are talked to, and jobs in the background.

A job is recorded and replayed like any exec. What a process was told while it ran is not kept, so it is recorded under
a kind of its own, and what comes after it in its sandbox cannot be replayed.
"""

from __future__ import annotations

from dataclasses import replace

from hotbed.node import execs, plans
from hotbed.node.execs import numbered
from hotbed.node.jobs import Job
from hotbed.node.node import Node
from hotbed.node.sessions import Session
from hotbed.runtime.base import OnOutput
from hotbed.runtime.running import OnStart
from hotbed.wire.execs import ExecRequest, ExecResponse
from hotbed.wire.processes import ProcessRequest


async def run_process(
    node: Node, session: Session, request: ProcessRequest, on_output: OnOutput, on_start: OnStart
) -> ExecResponse:
    """Run something that is talked to; its result when it has ended."""
    node.check_open()
    session.exec_count += 1
    size = request.terminal
    plan = replace(
        plans.exec_plan(request), stdin_open=True, terminal=(size.rows, size.columns) if size is not None else None
    )
    with session.in_use():
        return await execs.run(node, session, request, plan, on_output, on_start)


def start_job(node: Node, session: Session, request: ExecRequest) -> Job:
    """Start an exec and come back at once. Raises `AtCapacity`."""
    node.check_open()

    async def run(asked: ExecRequest, on_output: OnOutput, on_start: OnStart) -> ExecResponse:
        asked = numbered(session, asked)
        with session.in_use():
            return await execs.run(node, session, asked, plans.exec_plan(asked), on_output, on_start)

    return session.jobs.start(run, request, node.nursery)
