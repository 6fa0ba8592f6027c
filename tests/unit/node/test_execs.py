"""Execs of every kind are answered and noted alike."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from hotbed.errors import SandboxSuspended
from hotbed.node.egress import Egress
from hotbed.node.execs import run_exec
from hotbed.node.processes import run_process, start_job
from hotbed.runtime.base import Box
from hotbed.runtime.running import Running
from hotbed.wire.execs import ExecRequest
from hotbed.wire.processes import ProcessRequest
from hotbed.wire.sandboxes import CreateSandbox
from tests.unit.node.nodes import running_node


async def unheard(stream: int, data: bytes) -> None:
    """Nobody listens."""


def test_what_was_tried_is_in_the_result_of_whoever_tried_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job or a process that does not ask leaves it for the next exec, which did nothing of it."""

    async def tally(self: Egress, box: Box) -> Mapping[str, Any]:
        return {"mode": "listed"}

    async def scenario() -> None:
        monkeypatch.setattr(Egress, "tally", tally)
        async with running_node() as node:
            made = await node.create_sandbox(CreateSandbox(template="python"), None)
            session = node.sessions.get(made.id)
            job = start_job(node, session, ExecRequest(command="true"))
            await job.wait_end(30)

            def begun(running: Running) -> None:
                running.end_input()

            answers = [
                job.result,
                await run_process(node, session, ProcessRequest(command="cat"), unheard, begun),
                await run_exec(node, made.id, ExecRequest(command="true")),
            ]
            assert [answer and answer.egress for answer in answers] == [{"mode": "listed"}] * 3

    asyncio.run(scenario())


def test_nothing_runs_in_what_is_suspended() -> None:
    """And nobody counts as waiting for it."""

    async def scenario() -> None:
        async with running_node() as node:
            made = await node.create_sandbox(CreateSandbox(template="python"), None)
            node.sessions.get(made.id).suspended = "stopped"
            before = sum(len(meter.open) for meter in node.waits)
            with pytest.raises(SandboxSuspended):
                await run_exec(node, made.id, ExecRequest(command="true"))
            assert (before, sum(len(meter.open) for meter in node.waits), node.inflight) == (0, 0, 0)

    asyncio.run(scenario())
