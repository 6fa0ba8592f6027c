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
