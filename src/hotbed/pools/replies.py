"""What a worker sent, checked field by field: an answer of the right type, or a failure. Pure.

A worker is not trusted. Nothing it sends is believed beyond being data of the promised shape, and an answer counts only
for the request whose id it carries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

REASON_LIMIT = 8192
_REPORTED = ("error", "disk", "pids", "oom")


class Task(NamedTuple):
    """A worker's answer to reset."""

    task: Any
    info: dict[str, Any]
    env_ms: float
    maxrss_kib: int = 0


class Stepped(NamedTuple):
    """A worker's answer to step. A tuple, not a dataclass: one is made for each step of each worker."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    env_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """No answer. `fatal` when the worker cannot be used again."""

    status: str
    reason: str
    fatal: bool = True
    env_ms: float = 0.0


Header = Mapping[str, Any]


def read_ready(header: Header) -> Failure | None:
    """The first word of a worker: None when it is ready."""
    if header.get("op") == "ready" and type(header.get("closes")) is bool:
        return None
    if header.get("op") == "failed":
        return _reported(header, fatal=True)
    if header.get("op") == "error" and type(header.get("message")) is str:
        return Failure(status="lost", reason=f"its sandbox could not be made: {header['message'][:REASON_LIMIT]}")
    return violation("its first frame says neither ready nor failed")


def read_reset(header: Header, request_id: int) -> Task | Failure:
    """The answer to a reset."""
    failure = _other_than_an_answer(header, request_id)
    if failure is not None:
        return failure
    info = header.get("info")
    if "task" not in header or type(info) is not dict:
        return violation("it answered reset without a task")
    memory = header.get("maxrss_kib")
    maxrss_kib = memory if type(memory) is int and 0 <= memory < 1 << 40 else 0
    return Task(header["task"], info, _milliseconds(header), maxrss_kib)


def read_step(header: Header, request_id: int) -> Stepped | Failure:
    """The answer to a step."""
    failure = _other_than_an_answer(header, request_id)
    if failure is not None:
        return failure
    values = header.get("step")
    if type(values) is not list or len(values) != 5:
        return violation("it answered step with something else than five values")
    observation, reward, terminated, truncated, info = values
    if not _is_finite(reward):
        return violation("it answered step without a finite reward")
    if type(terminated) is not bool or type(truncated) is not bool:
        return violation("it answered step without saying whether the episode is done")
    if type(info) is not dict:
        return violation("it answered step with an info that is no object")
    return Stepped(observation, float(reward), terminated, truncated, info, _milliseconds(header))


def read_done(header: Header, request_id: int) -> Failure | None:
    """The answer to a request that has no result: None when it was done."""
    return _other_than_an_answer(header, request_id)


def _other_than_an_answer(header: Header, request_id: int) -> Failure | None:
    found = header.get("id")
    if type(found) is not int or found != request_id:
        return violation("it answered another request than the one asked")
    return _reported(header, fatal=False) if "status" in header else None


def _reported(header: Header, *, fatal: bool) -> Failure:
    """A failure in the worker's own words. One that ran into a limit is not used again."""
    status, reason = header.get("status"), header.get("reason")
    if status not in _REPORTED or type(reason) is not str:
        return violation("it reported a failure without a reason")
    return Failure(
        status=str(status),
        reason=reason[-REASON_LIMIT:],
        fatal=fatal or status != "error",
        env_ms=_milliseconds(header),
    )


def violation(what: str) -> Failure:
    """A worker that does not keep to the protocol."""
    return Failure(status="protocol", reason=f"the worker broke the protocol: {what}")


def _milliseconds(header: Header) -> float:
    """What the worker says it took; information only, so anything odd counts as nothing."""
    value = header.get("us")
    return value / 1e3 if type(value) is int and 0 <= value < 1 << 62 else 0.0


def _is_finite(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # an int beyond every float
        return False
