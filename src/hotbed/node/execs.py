"""Execs in sandboxes that are kept: one that is waited for, and what all kinds of them have in common."""

from __future__ import annotations

import secrets
import time

from hotbed.node import plans, records, seeding
from hotbed.node.leases import claim_of
from hotbed.node.ledger.entry import EntryKind
from hotbed.node.node import Node
from hotbed.node.sessions import Session
from hotbed.runtime.base import ExecRequest as ExecPlan
from hotbed.runtime.base import OnOutput
from hotbed.runtime.running import OnStart
from hotbed.wire.execs import ExecRequest, ExecResponse


async def run_exec(
    node: Node, session_id: str, request: ExecRequest, on_output: OnOutput | None = None
) -> ExecResponse:
    """Run one thing in a sandbox that is kept."""
    node.check_open()
    session = node.sessions.get(session_id)
    request = numbered(session, request)
    with session.in_use(), node.waits.begin(session.held.lease, "exec"):
        return await run(node, session, request, plans.exec_plan(request), on_output)


def numbered(session: Session, request: ExecRequest) -> ExecRequest:
    """The next exec of a sandbox, with the seed that it has as such."""
    session.exec_count += 1
    return seeding.in_sandbox(request, seed=session.seed, level=session.determinism, number=session.exec_count)


async def run(
    node: Node,
    session: Session,
    request: ExecRequest,
    plan: ExecPlan,
    on_output: OnOutput | None = None,
    on_start: OnStart | None = None,
) -> ExecResponse:
    """Run what was planned in a sandbox that is in use, and note what came of it."""
    begun, box = time.perf_counter(), session.held.box
    with node.working(), node.pace.program(claim_of(session.held.lease)[0]):
        outcome = await box.exec(plan, on_output, on_start)
    node.count(plan, outcome)
    kind: EntryKind = "process" if plan.stdin_open else "exec"
    answer = plans.response(
        outcome,
        exec_id=f"{kind}_{secrets.token_hex(8)}",
        box=box,
        template=session.template,
        seed=request.seed or session.seed,
        egress=await node.egress.tally(box),
        total_ms=(time.perf_counter() - begun) * 1e3,
    )
    entry = records.of_exec(request, answer, kind=kind, sandbox_id=session.id, label=session.label, at=time.time())
    node.note(entry, session.held.lease)
    return answer
