"""One worker's entry in what reset and step return, and the four columns that entries make. Pure.

In `details` the keys of the environment's own info come first and ours win; `info` holds it whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotbed.pools.replies import Failure, Stepped
from hotbed.pools.seats import Phase, Seat
from hotbed.pools.tasks import FailedTask

Entry = tuple[Any, float | None, bool, dict[str, Any]]
Batch = tuple[list[Any], list[float | None], list[bool], list[dict[str, Any]]]


def stepped(seat: Seat, answer: Stepped) -> Entry:
    """An environment's answer to a step."""
    detail = {**answer.info, **seat.detail()} if answer.info else seat.detail()
    detail["terminated"], detail["truncated"] = answer.terminated, answer.truncated
    detail["env_ms"], detail["step_ms"] = answer.env_ms, round(seat.step_ms, 3)
    detail["info"] = answer.info
    if seat.recovered:
        detail["recovered"] = True
    return answer.observation, answer.reward, answer.terminated or answer.truncated, detail


def failed(seat: Seat) -> Entry:
    """The failure that a seat stands at. No reward was formed where it was not the environment's doing."""
    failure = seat.failure or Failure(status="lost", reason="the worker has no episode")
    detail = seat.detail(failure.status, failure.reason)
    detail["terminated"], detail["truncated"] = False, True
    detail["env_ms"], detail["step_ms"] = failure.env_ms, round(seat.step_ms, 3)
    detail["info"] = {}
    return None, None if failure.status == "lost" else 0.0, True, detail


def began(seat: Seat) -> Entry:
    """An episode that has just begun, or could not."""
    if seat.phase is Phase.FAILED:
        _, reward, done, detail = failed(seat)
        return FailedTask(detail), reward, done, detail
    detail = {**seat.task_info, **seat.detail(), "reset": True, "step_ms": round(seat.step_ms, 3)}
    detail["maxrss_kib"] = seat.maxrss_kib
    detail["info"] = seat.task_info
    return seat.task, 0.0, False, detail


def restarted(seat: Seat, ended: Entry) -> Entry:
    """The entry of a step that ended an episode, with the task of the next one begun in its place."""
    observation, reward, done, detail = ended
    task, _, _, begun = began(seat)
    detail = {**detail, "final_observation": observation, "final_info": detail["info"], "info": begun["info"]}
    detail["reset"] = begun["status"] == "ok"
    return task, reward, done, detail


def skipped(seat: Seat) -> Entry:
    """A worker outside the mask."""
    return None, 0.0, seat.phase is not Phase.RUNNING, seat.detail("skipped", "not asked")


def columns(rows: Sequence[Entry]) -> Batch:
    """(results, rewards, done, details)."""
    results, rewards, done, details = zip(*rows, strict=True) if rows else ((), (), (), ())
    return list(results), list(rewards), list(done), list(details)
