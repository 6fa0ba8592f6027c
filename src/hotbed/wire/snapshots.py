"""Snapshots: of a pool's environments, taken and put back into workers; of sandboxes (see `live`); listed and freed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hotbed.wire.checks import require
from hotbed.wire.pools import WORKER_LIMIT


def _require_workers(workers: tuple[int, ...]) -> None:
    whole = all(type(worker) is int and 0 <= worker < WORKER_LIMIT for worker in workers)
    require(bool(workers) and whole and len(set(workers)) == len(workers), "workers must be different worker numbers")


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeSnapshot:
    """Of one worker, which must be waiting for a request. `skip`: leave out what cannot be carried over."""

    worker: int
    skip: bool = False
    verify: bool = False

    def __post_init__(self) -> None:
        _require_workers((self.worker,))


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRow:
    """A snapshot of a pool's environment, or of a sandbox. `skipped` names what it is without."""

    id: str
    pool: str = ""
    sandbox: str = ""
    template: str
    size: int
    layer_size: int
    age_s: float = 0.0
    take_time_ms: float = 0.0
    skipped: tuple[str, ...] = ()
    lease_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotList:
    """Every live snapshot."""

    snapshots: tuple[SnapshotRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreWorkers:
    """Replace workers by what a snapshot was taken of. `verify`: compare every page; needs a snapshot taken so."""

    snapshot: str
    workers: tuple[int, ...]
    verify: bool = False

    def __post_init__(self) -> None:
        _require_workers(self.workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkWorker:
    """Replace workers by copies of another one."""

    worker: int
    targets: tuple[int, ...]
    skip: bool = False
    verify: bool = False

    def __post_init__(self) -> None:
        _require_workers((self.worker, *self.targets))
        require(bool(self.targets), "targets is empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersRestored:
    """Which workers were replaced: those that were not have a reason in `failed`, and are as they were or gone."""

    workers: tuple[int, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    time_ms: float = 0.0
