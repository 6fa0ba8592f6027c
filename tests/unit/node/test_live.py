"""Live operations: all or nothing, whose the children are, and what a suspended sandbox refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hotbed.errors import AtCapacity, NotFound, NotSupported, SandboxBusy, SandboxFailed, SandboxSuspended
from hotbed.node import live
from hotbed.node.execs import run_exec
from hotbed.node.leases import Lease
from hotbed.node.node import Node
from hotbed.node.sessions import Session, next_deadline
from hotbed.wire.execs import ExecRequest
from hotbed.wire.live import ForkSandbox, SnapshotSandbox
from hotbed.wire.sandboxes import CreateSandbox
from tests.unit.node.nodes import running_node


def scenario(body: Callable[[Node, Session], Awaitable[None]], lease: Lease | None = None, **policy: Any) -> None:
    """Run with a sandbox of a node."""

    async def main() -> None:
        async with running_node(**policy) as node:
            made = await node.create_sandbox(CreateSandbox(template="python", label="p", labels={"a": "b"}), lease)
            await body(node, node.sessions.get(made.id))

    asyncio.run(main())


async def said(node: Node, sandbox: str, command: str) -> str:
    """What a command prints in a sandbox."""
    return (await run_exec(node, sandbox, ExecRequest(command=command))).stdout


def test_children_have_the_parents_files_lease_and_labels() -> None:
    """And a seed, a name and an end of their own."""
    lease = Lease()

    async def body(node: Node, parent: Session) -> None:
        await said(node, parent.id, "echo kept > /work/f")
        made = await live.fork(node, parent, ForkSandbox(count=3, labels=("x", "y", "z")))
        rows = [node.sessions.get(child.id).row() for child in made.children]
        assert [row.label for row in rows] == ["x", "y", "z"] and {row.parent for row in rows} == {parent.id}
        assert len({child.seed for child in made.children}) == 3
        assert rows[0].labels == {"a": "b"} and rows[0].group == made.group
        await parent.held.end("deleted")
        assert await said(node, made.children[1].id, "cat /work/f") == "kept\n"
        assert [session.group for session in node.sessions] == [made.group] * 3
        lease.end()

    scenario(body, lease)


def test_seeds_are_as_in_a_graded_group() -> None:
    """One for all, one each, or the same for ever."""

    async def body(node: Node, parent: Session) -> None:
        for mode, different in (("crn", 1), ("vanilla", 2), ("deterministic", 1)):
            request = ForkSandbox(count=2, seed_mode=mode, base_seed="ab" * 32)  # type: ignore[arg-type]  # one of three
            made = await live.fork(node, parent, request)
            assert len(set(made.seeds)) == different
            sessions = [node.sessions.get(child.id) for child in made.children]
            assert {session.determinism for session in sessions} == {"rng"}
            for session in sessions:
                await session.held.end("deleted")

    scenario(body)


def test_no_room_for_all_is_no_fork_at_all() -> None:
    """Refused before the parent is held still."""

    async def body(node: Node, parent: Session) -> None:
        with pytest.raises(AtCapacity):
            await live.fork(node, parent, ForkSandbox(count=8))
        assert (len(node.sessions), node.admission.running) == (1, 1)

    scenario(body)


def test_one_that_fails_takes_the_others_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never fewer than were asked for."""

    async def body(node: Node, parent: Session) -> None:
        forks = 0
        fork = node.fork

        async def failing(*args: Any, **how: Any) -> Any:
            nonlocal forks
            forks += 1
            if forks == 3:
                raise SandboxFailed("no more")
            return await fork(*args, **how)

        monkeypatch.setattr(node, "fork", failing)
        with pytest.raises(SandboxFailed):
            await live.fork(node, parent, ForkSandbox(count=4))
        await node.nursery.wait_empty(timeout_s=0.2)
        assert (len(node.sessions), node.admission.running) == (1, 1)

    scenario(body)


def test_a_suspended_sandbox_refuses_work_and_waits() -> None:
    """It is not idle meanwhile; what comes from it runs."""

    async def body(node: Node, parent: Session) -> None:
        await said(node, parent.id, "echo kept > /work/f")
        assert (await live.suspend(node, parent)).state == "suspended"
        assert (await live.suspend(node, parent)).state == "suspended"
        assert parent.row().state == "suspended"
        with pytest.raises(SandboxSuspended):
            await said(node, parent.id, "true")
        found = next_deadline(parent, parent.used_s + 10)
        assert found is not None and found[1] == "ttl" or found == (parent.used_s + 10 + 60, "idle")
        made = await live.fork(node, parent, ForkSandbox())
        assert await said(node, made.children[0].id, "cat /work/f") == "kept\n"
        assert (await live.resume(node, parent)).state == "running"
        assert (await live.resume(node, parent)).state == "running"
        assert await said(node, parent.id, "cat /work/f") == "kept\n"

    scenario(body)


def test_a_busy_sandbox_is_not_suspended() -> None:
    """Its exec would find its time gone."""

    async def body(node: Node, parent: Session) -> None:
        with parent.in_use(), pytest.raises(SandboxBusy):
            await live.suspend(node, parent)

    scenario(body)


def test_a_snapshot_starts_sandboxes_until_it_is_freed() -> None:
    """Of the same template only; and it may be a sandbox's last."""

    async def body(node: Node, parent: Session) -> None:
        await said(node, parent.id, "echo kept > /work/f")
        kept = await live.snapshot(node, parent, SnapshotSandbox(end=True))
        assert (kept.row().sandbox, len(node.sessions)) == (parent.id, 0)
        made = await node.create_sandbox(CreateSandbox(template="python", snapshot=kept.id), None)
        assert await said(node, made.id, "cat /work/f") == "kept\n"
        for template, snapshot in (("python-numpy", kept.id), ("python", "sn_none")):
            with pytest.raises(NotFound):
                await node.create_sandbox(CreateSandbox(template=template, snapshot=snapshot), None)
        kept.discard("freed")
        with pytest.raises(NotFound):
            await node.create_sandbox(CreateSandbox(template="python", snapshot=kept.id), None)

    scenario(body)


def test_a_backend_without_layers_says_so() -> None:
    """Nothing else is done instead."""

    async def body(node: Node, parent: Session) -> None:
        del node.backend.layers  # type: ignore[attr-defined]  # the fake has it
        with pytest.raises(NotSupported):
            await live.fork(node, parent, ForkSandbox())

    scenario(body)


def test_children_of_a_pinned_sandbox_are_pinned_by_its_seed() -> None:
    """A chain of forks that is made again from the same seed says the same again; no two of its links are alike."""
    chains = []

    async def body(node: Node, _: Session) -> None:
        made = await node.create_sandbox(CreateSandbox(template="python", seed="ab" * 32, determinism="full"), None)
        chain = [made.seed]
        for _generation in range(2):
            forked = [await live.fork(node, node.sessions.get(made.id), ForkSandbox()) for _ in range(2)]
            chain += [seed for fork in forked for seed in fork.seeds]
            made = forked[0].children[0]
            assert node.sessions.get(made.id).determinism == "full"
        chains.append(chain)
        plain = await live.fork(node, node.sessions.get(made.id), ForkSandbox(determinism="none"))
        assert node.sessions.get(plain.children[0].id).determinism == "none"

    scenario(body)
    scenario(body)

    assert chains[0] == chains[1]
    assert len(set(chains[0])) == len(chains[0]) == 5
