"""A node: check, admit, fork, join; and whatever fails, nothing stays taken."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.errors import AtCapacity, Draining, IsolationUnavailable, SandboxFailed, SandboxGone, UnknownTemplate
from hotbed.node.counters import counted
from hotbed.node.execs import run_exec
from hotbed.node.node import Node
from hotbed.runtime.backends.fake import FakeTemplate
from hotbed.runtime.backends.fake_box import FakeBox
from hotbed.runtime.base import BoxRequest
from hotbed.wire.execs import ExecRequest
from hotbed.wire.sandboxes import CreateSandbox
from tests.unit.node.nodes import running_node

PYTHON = CreateSandbox(template="python")


def test_a_sandbox_keeps_its_files_between_execs() -> None:
    """That is what it is kept for."""

    async def scenario() -> None:
        async with running_node() as node:
            made = await node.create_sandbox(PYTHON, None)
            await run_exec(node, made.id, ExecRequest(command="echo kept > /work/a"))
            result = await run_exec(node, made.id, ExecRequest(command="cat /work/a"))
            assert (result.stdout, result.seed, result.isolation) == ("kept\n", made.seed, "fake")
            assert node.sessions.get(made.id).row().exec_count == 2
            assert counted(node)["node"]["outcomes"] == {"ok": 2}

    asyncio.run(scenario())


def test_refusals_come_before_a_turn_is_taken() -> None:
    """Nothing to undo, nothing to leak."""

    async def scenario() -> None:
        async with running_node() as node:
            with pytest.raises(UnknownTemplate):
                await node.create_sandbox(CreateSandbox(template="nope"), None)
            with pytest.raises(IsolationUnavailable):
                await node.create_sandbox(CreateSandbox(template="python", min_isolation="fork"), None)
            assert node.stats.counts["forks"] == 0

    asyncio.run(scenario())


def test_a_full_node_refuses() -> None:
    """And has room again once a sandbox is gone."""

    async def scenario() -> None:
        async with running_node(max_sandboxes=1, queue_limit=0) as node:
            made = await node.create_sandbox(PYTHON, None)
            with pytest.raises(AtCapacity):
                await node.create_sandbox(PYTHON, None)
            await node.sessions.get(made.id).held.end("deleted")
            await node.create_sandbox(PYTHON, None)

    asyncio.run(scenario())


def test_a_client_that_goes_as_its_sandbox_is_ready_leaves_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is ending already tells nobody again that it ends."""

    async def scenario() -> None:
        async with running_node() as node:
            lease = node.leases.open()

            async def ready(self: FakeBox) -> None:
                node.leases.end(lease)

            monkeypatch.setattr(FakeBox, "ready", ready)
            with pytest.raises(SandboxGone):
                await node.create_sandbox(PYTHON, lease)
            assert await node.nursery.wait_empty(timeout_s=5)
            assert (len(node.sessions), node.health().running) == (0, 0)

    asyncio.run(scenario())


def test_a_fork_that_fails_gives_its_turn_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight failures must not use up eight turns."""

    async def broken(self: FakeTemplate, request: BoxRequest) -> FakeBox:
        raise SandboxFailed("no")

    async def scenario() -> None:
        async with running_node() as node:
            with monkeypatch.context() as patch:
                patch.setattr(FakeTemplate, "fork", broken)
                for _ in range(20):
                    with pytest.raises(SandboxFailed):
                        await node.create_sandbox(PYTHON, None)
            assert node.health().running == 0

    asyncio.run(scenario())


def test_a_lease_that_ends_during_the_fork_leaves_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client died in the millisecond its sandbox was born."""

    async def scenario() -> None:
        async with running_node() as node:
            lease = node.leases.open()
            fork = FakeTemplate.fork

            async def fork_late(self: FakeTemplate, request: BoxRequest) -> FakeBox:
                node.leases.end(lease)
                return await fork(self, request)

            monkeypatch.setattr(FakeTemplate, "fork", fork_late)
            with pytest.raises(SandboxGone):
                await node.create_sandbox(PYTHON, lease)
            assert await node.nursery.wait_empty(timeout_s=5)
            assert (len(node.sessions), node.health().running) == (0, 0)

    asyncio.run(scenario())


def test_a_sandbox_that_dies_on_its_own_takes_its_session_with_it() -> None:
    """A killed agent must not stay listed as running."""

    async def scenario() -> None:
        async with running_node() as node:
            made = await node.create_sandbox(PYTHON, None)
            await node.sessions.get(made.id).held.box.kill()
            await asyncio.sleep(0)  # those who wait for that are told
            with pytest.raises(SandboxGone):
                node.sessions.get(made.id)

    asyncio.run(scenario())


async def drained(node: Node, deadline_s: float) -> None:
    """A drain with one exec running."""
    made = await node.create_sandbox(PYTHON, None)
    running = asyncio.ensure_future(run_exec(node, made.id, ExecRequest(command="sleep 0.2; echo done")))
    await asyncio.sleep(0.05)
    draining = asyncio.ensure_future(node.drain(deadline_s=deadline_s))
    await asyncio.sleep(0)
    assert node.health().status == "draining"
    with pytest.raises(Draining):
        await node.create_sandbox(PYTHON, None)
    await draining
    if deadline_s > 1:
        assert (await running).stdout == "done\n"
    else:
        with pytest.raises(SandboxGone):
            await running


@pytest.mark.slow
@pytest.mark.parametrize("deadline_s", [5.0, 0.01])
def test_a_drain_lets_running_work_end_within_its_deadline(deadline_s: float) -> None:
    """New work is refused at once, old work gets its time, then everything ends."""

    async def scenario() -> None:
        async with running_node() as node:
            await drained(node, deadline_s)

    asyncio.run(scenario())
