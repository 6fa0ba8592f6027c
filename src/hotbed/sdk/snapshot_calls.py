"""The operations on snapshots as values, before any I/O has happened."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from hotbed.sdk.bodies import json_body, read_json
from hotbed.sdk.calls import Call
from hotbed.wire import routes
from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.sandboxes import Deleted
from hotbed.wire.snapshots import (
    ForkWorker,
    RestoreWorkers,
    SnapshotList,
    SnapshotRow,
    TakeSnapshot,
    WorkersRestored,
)

T = TypeVar("T")

COPY_TIMEOUT_S = 300.0


def take(pool_id: str, worker: int, *, skip: bool, verify: bool) -> Call[SnapshotRow]:
    """Take a snapshot of a worker."""
    request = TakeSnapshot(worker=worker, skip=skip, verify=verify)
    return _post(routes.TAKE_SNAPSHOT, pool_id, request, SnapshotRow)


def restore(pool_id: str, snapshot_id: str, workers: Sequence[int], *, verify: bool) -> Call[WorkersRestored]:
    """Replace workers by what a snapshot was taken of."""
    request = RestoreWorkers(snapshot=snapshot_id, workers=tuple(workers), verify=verify)
    return _post(routes.RESTORE_WORKERS, pool_id, request, WorkersRestored)


def fork(pool_id: str, worker: int, targets: Sequence[int], *, skip: bool, verify: bool) -> Call[WorkersRestored]:
    """Replace workers by copies of one."""
    request = ForkWorker(worker=worker, targets=tuple(targets), skip=skip, verify=verify)
    return _post(routes.FORK_WORKER, pool_id, request, WorkersRestored)


def listing() -> Call[SnapshotList]:
    """Every live snapshot of the caller."""
    return Call(method="GET", target=routes.LIST_SNAPSHOTS.url(), read=partial(_read, SnapshotList))


def free(snapshot_id: str) -> Call[Deleted]:
    """Free a snapshot."""
    route = routes.DELETE_SNAPSHOT
    return Call(method=route.method, target=route.url(id=snapshot_id), read=partial(_read, Deleted))


def _post(route: routes.Route, pool_id: str, request: object, reply: type[T]) -> Call[T]:
    return Call(
        method=route.method,
        target=route.url(id=pool_id),
        read=partial(_read, reply),
        body=json_body(to_wire(request)),
        timeout_s=COPY_TIMEOUT_S,
    )


def _read(kind: type[T], body: bytes) -> T:
    return from_wire(kind, read_json(body))
