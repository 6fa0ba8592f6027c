"""What a pool promises: its options and the statuses of a step.

Misuse raises before anything is run (see `hotbed.errors`). What happens *inside* a worker never raises: it is that
worker's entry in `details`, with one of the statuses below.

    ok        the environment answered
    error     env.py raised; the reason is its traceback's tail
    timeout   no answer in time; the worker was killed
    exit      the worker's process ended by itself
    signal    it was killed by a signal of its own making (a segfault)
    oom, pids, disk   it ran into that limit
    protocol  what it sent is not an answer; the worker was killed
    lost      not the environment's doing: the worker or its node is gone. No reward was formed (`None`)
    skipped   not asked, by `mask`
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hotbed.errors import InvalidRequest

Mode = Literal["default", "boltz"]
Autoreset = Literal["disabled", "next_step", "same_step"]
Recover = Literal["none", "replay"]

IN_WORKER = ("error", "timeout", "exit", "signal", "oom", "pids", "disk", "output", "protocol")
WORKER_LIMIT = 4096
TIMEOUT_LIMIT_S = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """How a pool behaves towards its caller, checked once."""

    n: int
    mode: Mode = "default"
    autoreset: Autoreset = "disabled"
    recover: Recover = "none"
    record: bool = False
    step_timeout_s: float = 60.0
    reset_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if type(self.n) is not int or not 1 <= self.n <= WORKER_LIMIT:
            raise InvalidRequest(f"n must be a whole number from 1 to {WORKER_LIMIT}, not {self.n!r}")
        for name, allowed in (("mode", Mode), ("autoreset", Autoreset), ("recover", Recover)):
            value = getattr(self, name)
            if value not in get_args(allowed):
                raise InvalidRequest(f"{name} must be {' or '.join(get_args(allowed))}, not {value!r}")
        for name in ("step_timeout", "reset_timeout"):
            _check_timeout(name, getattr(self, f"{name}_s"))


def _check_timeout(name: str, value: Any) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not 0 < value <= TIMEOUT_LIMIT_S:
        raise InvalidRequest(f"{name} must be seconds above 0, not {value!r}")
