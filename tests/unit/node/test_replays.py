"""What has to be run again for a rollout, and what is refused. The runs themselves are tested over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest, UnknownRollout
from hotbed.node.ledger.store import Store
from hotbed.node.replays import load
from tests.unit.node.ledger.entries import entry


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one rollout and one sandbox's life."""
    store = Store(tmp_path / "l.db")
    store.add(
        [
            entry(0),
            entry(1, kind="create", sandbox_id="s"),
            entry(2, kind="put", sandbox_id="s"),
            entry(3, kind="exec", sandbox_id="s"),
            entry(4, kind="exec", sandbox_id="other"),
            entry(5, kind="exec", sandbox_id="s"),
            entry(6, kind="grade"),
        ]
    )
    return store


def test_a_rollout_stands_alone(store: Store) -> None:
    """It had a sandbox of its own."""
    assert [event.row["seq"] for event in load(store, "rollout_000000")] == [1]


def test_a_grade_stands_alone(store: Store) -> None:
    """Its candidate was forked for it."""
    assert [event.row["kind"] for event in load(store, "rollout_000006")] == ["grade"]


def test_an_episode_stands_alone(store: Store) -> None:
    """Its pool is made again."""
    store.add([entry(7, kind="episode")])
    assert [event.row["kind"] for event in load(store, "rollout_000007")] == ["episode"]


def test_an_exec_comes_with_the_life_of_its_sandbox(store: Store) -> None:
    """From birth to the exec itself, and nothing after it."""
    assert [event.row["kind"] for event in load(store, "rollout_000003")] == ["create", "put", "exec"]


@pytest.mark.parametrize("rollout_id", ["rollout_000001", "rollout_000002", "rollout_000004"])
def test_what_cannot_be_run_again_is_refused(store: Store, rollout_id: str) -> None:
    """A birth, a file, and an exec whose beginning retention has removed."""
    with pytest.raises(InvalidRequest):
        load(store, rollout_id)


def test_an_unknown_id_is_told_apart(store: Store) -> None:
    """From one that cannot be run again."""
    with pytest.raises(UnknownRollout):
        load(store, "rollout_9")


def test_an_exec_of_a_fork_comes_with_what_its_parents_did_before_they_were_forked(store: Store) -> None:
    """Its files were made there; what came after is not its own."""
    store.add(
        [
            entry(7, kind="create", sandbox_id="child", details={"parent": "s"}),
            entry(8, kind="exec", sandbox_id="s"),
            entry(9, kind="exec", sandbox_id="child"),
            entry(10, kind="create", sandbox_id="grandchild", details={"parent": "child"}),
            entry(11, kind="exec", sandbox_id="grandchild"),
        ]
    )

    life = [(event.row["sandbox_id"], event.row["kind"]) for event in load(store, "rollout_000011")]

    before = [("s", "create"), ("s", "put"), ("s", "exec"), ("s", "exec")]
    assert life == [*before, ("child", "create"), ("child", "exec"), ("grandchild", "create"), ("grandchild", "exec")]
