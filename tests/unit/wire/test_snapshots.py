"""Shapes of snapshots, checked where they are made."""

from __future__ import annotations

import pytest

from hotbed.errors import InvalidRequest
from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.snapshots import ForkWorker, RestoreWorkers, SnapshotRow, TakeSnapshot


@pytest.mark.parametrize("workers", [(), (1, 1), (-1,), (1.5,), (5000,)])
def test_workers_are_different_numbers(workers: tuple[int, ...]) -> None:
    """At least one."""
    with pytest.raises(InvalidRequest):
        RestoreWorkers(snapshot="sn_1", workers=workers)


def test_a_worker_is_no_copy_of_itself() -> None:
    """Nor of nobody."""
    with pytest.raises(InvalidRequest):
        ForkWorker(worker=1, targets=(0, 1))
    with pytest.raises(InvalidRequest):
        ForkWorker(worker=1, targets=())


@pytest.mark.parametrize(
    "value",
    [
        TakeSnapshot(worker=3, skip=True),
        RestoreWorkers(snapshot="sn_1", workers=(1, 2), verify=True),
        SnapshotRow(id="sn_1", pool="pl_1", template="t", size=5, layer_size=2, skipped=("a socket",)),
    ],
)
def test_values_survive_the_wire(value: object) -> None:
    """As JSON data and back."""
    assert from_wire(type(value), to_wire(value)) == value
