"""The hot path: fork, run once, discard.

The answer does not wait for the teardown; the sandbox counts against the node's limit until the teardown is done.
"""

from __future__ import annotations

import secrets
import time

from hotbed.egress.policy import Policy
from hotbed.node import plans, records, seeding
from hotbed.node.leases import Lease, tenant_id
from hotbed.node.node import Node
from hotbed.node.recordings import Recorded
from hotbed.runtime.base import OnOutput
from hotbed.wire.execs import ExecResponse, RolloutRequest


async def run_rollout(
    node: Node,
    request: RolloutRequest,
    lease: Lease | None,
    on_output: OnOutput | None = None,
    *,
    again: Recorded | None = None,
) -> ExecResponse:
    """Run one thing in a sandbox of its own; `again` is the rollout that this repeats."""
    begun = time.perf_counter()
    node.check_open()
    plans.check_isolation(node.isolation, request.min_isolation)
    request = seeding.completed(request)
    seed = plans.seed_of(request)
    name = f"rollout_{secrets.token_hex(8)}"
    egress = _policy(node, request, lease, name, again)
    exec_plan = plans.exec_plan(request, last=True)
    box_plan = plans.box_plan(node.templates.spec(request.template), request, egress, first=exec_plan)
    template = await node.templates.plain(request.template)
    with node.working(), node.waits.begin(lease) as wait:
        held = await node.fork(template, box_plan, lease, wait=wait)
        node.egress.name(held.box, rollout_id=name)
        try:
            outcome = await held.box.exec(exec_plan, on_output)
            tally = await node.egress.tally(held.box)
            wait.forked(held.box.fork_time_ms, plans.exec_ms(outcome))
        finally:
            held.discard("rollout_done")
    total_ms = (time.perf_counter() - begun) * 1e3
    node.count(exec_plan, outcome)
    node.stats.fork_ms.add(held.box.fork_time_ms)
    node.stats.rollout_ms.add(total_ms)
    answer = plans.response(
        outcome, exec_id=name, box=held.box, template=template, seed=seed, total_ms=total_ms, egress=tally
    )
    node.note(records.of_rollout(request, answer, at=time.time()), lease)
    return answer


def _policy(
    node: Node, request: RolloutRequest, lease: Lease | None, name: str, again: Recorded | None
) -> Policy | None:
    recorded = again or Recorded(id=name, tenant=tenant_id(lease), group=records.group_of(request))
    return node.egress.policy(request.egress, request.template, lease, of=recorded, sealed=again is not None)
