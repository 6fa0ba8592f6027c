"""Live operations on sandboxes that are kept: fork, snapshot, suspend and resume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from hotbed.wire.checks import require, require_level, require_positive, require_seed
from hotbed.wire.execs import Determinism
from hotbed.wire.sandboxes import SandboxCreated

SeedMode = Literal["vanilla", "crn", "deterministic"]
FORK_LIMIT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSandbox:
    """Make `count` sandboxes that start with one's files as they are at one instant. All of them, or none.

    Each gets a seed by `seed_mode`, as the members of a graded group do: `vanilla` its own, `crn` all the same,
    `deterministic` the same in every group ever. `base_seed` is what they are derived from.
    """

    count: int = 1
    labels: tuple[str, ...] | None = None
    seed_mode: SeedMode = "vanilla"
    base_seed: str | None = None
    determinism: Determinism | None = None
    ttl_s: float | None = None
    idle_ttl_s: float | None = None

    def __post_init__(self) -> None:
        good = type(self.count) is int and 1 <= self.count <= FORK_LIMIT
        require(good, f"count must be 1 to {FORK_LIMIT}, not {self.count!r}")
        modes = get_args(SeedMode)
        require(self.seed_mode in modes, f"seed_mode is {', '.join(modes)}, not {self.seed_mode!r}")
        require(self.labels is None or len(self.labels) == self.count, "labels must have one per child")
        require_seed(self.base_seed)
        require_level(self.determinism)
        require_positive("ttl_s", self.ttl_s)
        require_positive("idle_ttl_s", self.idle_ttl_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxForked:
    """A fork group. `skipped` names what its children do not have of the parent; `how` it was held still meanwhile."""

    parent: str
    group: str
    children: tuple[SandboxCreated, ...]
    seeds: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    how: str = ""
    size: int = 0
    copy_time_ms: float = 0.0
    time_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSandbox:
    """Keep a sandbox's files as they are now. With `end` it ends with that, and nothing is copied."""

    end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxState:
    """Whether a sandbox runs or is suspended; `how` it is held still: by its `cgroup`, or by `signals`.

    `reclaimed` is how many bytes of memory the kernel took back; None where it cannot be asked to.
    """

    id: str
    state: str
    how: str = ""
    reclaimed: int | None = None
