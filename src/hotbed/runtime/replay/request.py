"""What is to be pinned for one exec or program, as the node says it to the supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hotbed.errors import InvalidRequest, InvalidSeed
from hotbed.runtime.replay.streams import SEED_BYTES

Level = Literal["rng", "full"]

EPOCH_NS = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z
STEP_NS = 20_000  # about what a reading costs, so that a program that spins until later takes about as long as it says
_LATEST_NS = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class PinRequest:
    """What one rollout is pinned by.

    `epoch_ns` is the wall clock's start and `step_ns` what each reading adds; both matter at level `full` only. `roots`
    is how many processes will pin themselves, one after the other: the commands of an exec.
    """

    seed: bytes
    level: Level = "rng"
    epoch_ns: int = EPOCH_NS
    step_ns: int = STEP_NS
    roots: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.seed, bytes) or len(self.seed) != SEED_BYTES:
            raise InvalidSeed("a seed has 32 bytes", hint="64 hex characters, an int, or bytes")
        if self.level not in ("rng", "full"):
            raise InvalidRequest(f"determinism is none, rng or full, not {self.level!r}")
        if not 0 <= self.epoch_ns < _LATEST_NS:
            raise InvalidRequest(f"clock epoch {self.epoch_ns!r} is not between 1970 and 2116")
        if not 0 < self.step_ns <= 10**9:
            raise InvalidRequest(f"clock step {self.step_ns!r} is not between one nanosecond and one second")
        if self.roots < 1:
            raise InvalidRequest(f"{self.roots!r} processes cannot be pinned")

    @classmethod
    def of(
        cls, seed: bytes, level: str, *, roots: int = 1, clock: tuple[int | None, int | None] = (None, None)
    ) -> PinRequest:
        """For a level that pins anything; of the clock's epoch and step, None is the usual one."""
        epoch, step = clock
        return cls(
            seed=seed,
            level="full" if level == "full" else "rng",
            epoch_ns=EPOCH_NS if epoch is None else epoch,
            step_ns=STEP_NS if step is None else step,
            roots=roots,
        )

    def to_wire(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "seed": self.seed.hex(),
            "level": self.level,
            "epoch_ns": self.epoch_ns,
            "step_ns": self.step_ns,
            "roots": self.roots,
        }

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> PinRequest:
        """What `to_wire` gave."""
        return cls(
            seed=bytes.fromhex(data["seed"]),
            level=data["level"],
            epoch_ns=data["epoch_ns"],
            step_ns=data["step_ns"],
            roots=data["roots"],
        )
