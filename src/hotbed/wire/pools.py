"""Pools of environment workers: what their client and the node say to each other, besides the lanes themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hotbed.wire.checks import require, require_egress, require_seed
from hotbed.wire.execs import Isolation

PoolMode = Literal["default", "boltz"]
Trouble = Literal["closed", "timeout", "protocol", "error", "oom", "pids", "disk"]

WORKER_LIMIT = 4096
EPISODES_LIMIT = 64  # told of in one request
_DIGEST = re.compile(r"[0-9a-f]{64}")


def require_digest(digest: str) -> None:
    """Refuse what is not a SHA-256 in hex."""
    require(isinstance(digest, str) and bool(_DIGEST.fullmatch(digest)), f"{str(digest)[:80]!r} is no SHA-256 in hex")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvDir:
    """An environment directory that the node holds, named by the SHA-256 of its tar."""

    digest: str
    files: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePool:
    """Start `n` workers of an environment directory that the node holds.

    `preload`: load env.py once, ahead, in the process that they are forked from, as boltz mode does. `record`: its
    client will tell of every episode, which a node without a ledger refuses.
    """

    env_digest: str
    n: int
    mode: PoolMode = "default"
    preload: bool = False
    record: bool = False
    template: str = "python"
    limits: Mapping[str, float] | None = None
    seed: str | None = None
    slots: int | None = None
    min_isolation: Isolation | None = None
    label: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    egress: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        require_digest(self.env_digest)
        require_egress(self.egress)
        require_seed(self.seed)
        require(
            type(self.n) is int and 1 <= self.n <= WORKER_LIMIT, f"n must be from 1 to {WORKER_LIMIT}, not {self.n!r}"
        )
        require(self.template != "", "template is empty", "built-in templates: python, python-numpy")
        slots = self.slots
        require(
            slots is None or (type(slots) is int and slots >= 1), f"slots must be a whole number above 0, not {slots!r}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCreated:
    """A pool. Its client on the same machine gets the lanes from the Unix socket `lanes`, with the token."""

    id: str
    n: int
    mode: PoolMode
    template: str
    template_digest: str
    isolation: str
    token: str
    lanes: str | None = None
    slots: int | None = None
    create_time_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A worker as listed. `state` is starting, waiting (for its client to take the lane), leased or ended."""

    index: int
    id: str
    generation: int
    state: str
    isolation: str = ""
    fork_time_ms: float = 0.0
    warm_hit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRow:
    """A pool as listed."""

    id: str
    n: int
    mode: PoolMode
    template: str
    env_digest: str
    isolation: str
    age_s: float
    slots: int | None = None
    replaced: int = 0
    label: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    lease_id: str | None = None
    workers: tuple[WorkerRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolList:
    """Every live pool of the caller."""

    pools: tuple[PoolRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTrouble:
    """A worker that its client gave up, and why. One whose lane was `closed` is given a moment to die by itself."""

    index: int
    trouble: Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class EndWorkers:
    """End these workers, and say how each ended."""

    workers: tuple[WorkerTrouble, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnded:
    """How a worker ended: `exit`, `signal`, a limit's name, or `lost` where it was not its own doing."""

    index: int
    status: str
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersEnded:
    """The answer to `EndWorkers`."""

    workers: tuple[WorkerEnded, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOutput:
    """What a worker's env.py has printed, head and tail of each stream."""

    index: int
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One episode of a worker, as its client saw it.

    `actions` is a JSON array, `shown` a line of JSON for the task and one for what each action showed. The last
    `unkept` steps were too much to keep. `branched`: it went on from a copy of another episode.
    """

    worker: int
    number: int
    seed: int
    status: str = "ok"
    reason: str = ""
    reward: float = 0.0
    actions: str = "[]"
    shown: str = ""
    unkept: int = 0
    branched: bool = False
    took_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEpisodes:
    """Episodes of a pool that are over, for the ledger."""

    episodes: tuple[Episode, ...]

    def __post_init__(self) -> None:
        require(
            len(self.episodes) <= EPISODES_LIMIT, f"{len(self.episodes)} episodes; at most {EPISODES_LIMIT} at once"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodesRecorded:
    """What they are called in the ledger, in their order."""

    ids: tuple[str, ...] = ()
