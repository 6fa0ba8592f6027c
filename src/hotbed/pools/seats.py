"""A seat: what the caller's side of a pool knows about one of its n environments."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hotbed.guest.environments import values
from hotbed.pools.replies import Failure, Task


class Phase(Enum):
    """Where an episode is."""

    NEW = "new"  # no episode yet
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"  # the worker could not go on; the failure is the seat's last word until the next reset


class Lane(Enum):
    """What the seat has of a worker."""

    NONE = "none"
    FRESH = "fresh"  # granted, no episode has run in it
    USED = "used"


@dataclass(frozen=True, slots=True)
class Logged:
    """An action of the episode and the hash of what it showed. The first entry is the reset, without an action."""

    action: Any
    digest: bytes


@dataclass(slots=True, kw_only=True)
class Seat:
    """One environment, over all its episodes and workers."""

    index: int
    lane: Lane = Lane.NONE
    phase: Phase = Phase.NEW
    isolation: str = ""
    episode: int = -1
    steps: int = 0
    seed: int = 0
    request_id: int = 0
    busy: bool = False
    closes: bool = False
    posted_s: float = 0.0
    task: Any = None
    task_info: dict[str, Any] = field(default_factory=dict)
    failure: Failure | None = None
    recovered: bool = False
    step_ms: float = 0.0
    maxrss_kib: int = 0
    log: list[Logged] = field(default_factory=list)

    def begin(self, seed: int) -> None:
        """A new episode."""
        self.episode += 1
        self.seed, self.steps = seed, 0
        self.task, self.task_info, self.failure = None, {}, None
        self.recovered = False
        self.log.clear()

    def take_task(self, task: Task) -> None:
        """The episode has begun."""
        self.phase, self.failure = Phase.RUNNING, None
        self.task, self.task_info, self.maxrss_kib = task.task, task.info, task.maxrss_kib

    def next_request(self) -> int:
        """An id that no earlier request of this seat had."""
        self.request_id += 1
        return self.request_id

    def fail(self, failure: Failure) -> None:
        """The episode cannot go on."""
        self.phase, self.failure = Phase.FAILED, failure

    def detail(self, status: str = "ok", reason: str = "") -> dict[str, Any]:
        """The seat's entry in `details`, without what only one kind of entry has."""
        return {
            "status": status,
            "reason": reason,
            "index": self.index,
            "isolation": self.isolation,
            "seed": self.seed,
            "episode": self.episode,
            "step": self.steps,
        }


def digest_of(value: Any) -> bytes:
    """A hash of an observation, to tell whether a replay shows the same."""
    return hashlib.sha256(values.pack({"value": value})).digest()
