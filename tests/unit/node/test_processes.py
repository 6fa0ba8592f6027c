"""Processes and jobs in the books of the node."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hotbed.errors import Draining, InvalidRequest
from hotbed.node import replays
from hotbed.node.execs import run_exec
from hotbed.node.ledger.ledger import Ledger
from hotbed.node.processes import run_process, start_job
from hotbed.runtime.running import Running
from hotbed.wire.execs import ExecRequest, ExecResponse
from hotbed.wire.processes import ProcessRequest
from hotbed.wire.sandboxes import CreateSandbox
from tests.unit.node.nodes import running_node


async def unheard(stream: int, data: bytes) -> None:
    """Nobody listens."""


def test_a_process_is_recorded_as_what_cannot_be_run_again(tmp_path: Path) -> None:
    """What it was told is not kept, and the sandbox is another since."""

    async def run() -> None:
        async with running_node() as node:
            node.ledger = Ledger(tmp_path)
            made = await node.create_sandbox(CreateSandbox(template="python"), None)
            session = node.sessions.get(made.id)

            def begun(running: Running) -> None:
                running.end_input()

            answer = await run_process(node, session, ProcessRequest(command="cat"), unheard, begun)
            assert answer.ok and answer.id.startswith("process_")
            after = await run_exec(node, made.id, ExecRequest(command="echo after"))
            assert (node.inflight, session.active, session.exec_count) == (0, 0, 2)
            for name in (answer.id, after.id):
                with pytest.raises(InvalidRequest):
                    await replays.replay(node, name, None)
            await session.held.end("deleted")

    asyncio.run(run())


def test_a_job_counts_as_work_and_as_use() -> None:
    """A drain waits for it, and its sandbox is not idle."""

    async def run() -> ExecResponse | None:
        async with running_node() as node:
            made = await node.create_sandbox(CreateSandbox(template="python"), None)
            session = node.sessions.get(made.id)
            job = start_job(node, session, ExecRequest(command="sleep 0.1"))
            while job.running is None:
                await asyncio.sleep(0.001)
            assert (node.inflight, session.active) == (1, 1)
            await job.wait_end(5)
            node.draining = True
            with pytest.raises(Draining):
                start_job(node, session, ExecRequest(command="true"))
            await session.held.end("deleted")
            return job.result

    answer = asyncio.run(run())
    assert answer is not None and answer.id.startswith("exec_")
