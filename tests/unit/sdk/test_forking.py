"""Live operations of a kept sandbox, blocking face."""

from __future__ import annotations

import pytest

from hotbed.errors import InvalidRequest, NotFound, SandboxGone, SandboxSuspended
from hotbed.sdk.client import Client
from hotbed.sdk.sandbox import Sandbox


def test_forks_go_their_own_ways(client: Client) -> None:
    """They have the parent's files, and outlive it."""
    with Sandbox("python", client=client, default_timeout=20.0) as parent:
        parent.upload_bytes("/work/f", b"kept")
        first, second = parent.fork(2, labels=("a", "b"))
        assert {row.label for row in client.sandboxes()} == {"", "a", "b"}
    first.upload_bytes("/work/f", b"changed")

    assert second.download("/work/f") == b"kept"

    first.close()
    second.close()
    assert client.sandboxes() == ()


def test_a_group_runs_at_once_and_ends_at_once(client: Client) -> None:
    """Results in the order of its children; the parent lives on."""
    with client.session("python") as parent:
        parent.upload_bytes("/work/f", b"kept\n")
        with parent.fork_group(4, seed_mode="vanilla", base_seed=7) as group:
            assert (len(group), len(set(group.seeds)), group[0].seed) == (4, 4, group.seeds[0])
            assert [result.stdout for result in group.exec_each(command="cat /work/f") if result] == ["kept\n"] * 4
            assert group.map(lambda index, child: (index, child.id)) == list(enumerate(child.id for child in group))
            group[2].close()
            assert group.map(lambda _, child: child.exec("1"), on_infra_error="none", concurrency=2)[2] is None
            with pytest.raises(SandboxGone):
                group.exec_each("1")
            assert repr(group) == f"<ForkGroup {group.id} of 4>"
        group.close()
        assert [row.id for row in client.sandboxes()] == [parent.id]
        with pytest.raises(SandboxGone):
            group[0].exec("1")


def test_a_snapshot_starts_sandboxes(client: Client) -> None:
    """By itself, or by its id and its template's name."""
    with Sandbox("python", client=client) as parent:
        parent.upload_bytes("/work/f", b"kept")
        with parent.snapshot() as kept:
            assert [row.id for row in client.snapshots()] == [kept.id]
            for given in ({"snapshot": kept}, {"snapshot": kept.id, "template": "python"}):
                with Sandbox.from_snapshot(client=client, **given) as sandbox:
                    assert sandbox.download("/work/f") == b"kept"
            with pytest.raises(InvalidRequest, match="template"):
                Sandbox.from_snapshot(kept.id, client=client)
            assert "SandboxSnapshot" in repr(kept)
        with pytest.raises(NotFound):
            Sandbox.from_snapshot(kept, client=client).start()
        last = parent.snapshot(end=True)
        assert parent.session_id is None
    client.free_snapshot(last.id)
    last.free()

    assert client.snapshots() == ()


def test_a_suspended_sandbox_waits(client: Client) -> None:
    """And says what to do."""
    with Sandbox("python", client=client) as sandbox:
        assert sandbox.suspend().state == "suspended"
        with pytest.raises(SandboxSuspended, match="resume"):
            sandbox.exec("1")
        assert sandbox.resume().state == "running"
        assert sandbox.exec("print(1)").ok
