"""Crash recovery by replay: a fresh worker, the same seed, the same actions, and the same observations or nothing.

Only a worker that *died* is recovered: a timeout is its environment's answer to that action, and so is an exception.
The action it died on is tried once more; if it kills the fresh worker too, the failure stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hotbed.errors import Error
from hotbed.pools.engine import Engine
from hotbed.pools.replies import Failure, Stepped
from hotbed.pools.seats import Phase, Seat, digest_of

RECOVERABLE = frozenset({"exit", "signal", "oom", "lost"})


def recover(engine: Engine, seats: Iterable[Seat], actions: dict[int, object]) -> dict[int, Stepped | Failure]:
    """Bring dead seats to where they were and take their last step again; what came of it, by seat."""
    return {seat.index: _recover(engine, seat, actions[seat.index]) for seat in seats}


def is_recoverable(answer: Stepped | Failure) -> bool:
    """Whether a replay can help."""
    return isinstance(answer, Failure) and answer.status in RECOVERABLE


def _recover(engine: Engine, seat: Seat, action: object) -> Stepped | Failure:
    death = seat.failure
    assert death is not None
    try:
        obstacle = _replay(engine, seat) if seat.log else "its episode was forked under another seed"
    except Error as error:
        obstacle = f"there is no fresh worker: {error}"
    if obstacle is None:
        answer = _step(engine, seat, action)
        if isinstance(answer, Stepped):
            seat.recovered = True
            return answer
        obstacle = f"the same action failed again: {answer.reason}"
    failure = replace(death, reason=f"{death.reason}\nnot recovered: {obstacle}")
    seat.fail(failure)
    return failure


def _replay(engine: Engine, seat: Seat) -> str | None:
    """Take a fresh worker through the episode; what stood in the way, if anything."""
    log = list(seat.log)
    engine.run_reset([seat.index])
    if seat.phase is not Phase.RUNNING:
        return f"reset failed: {seat.failure.reason if seat.failure else ''}"
    if digest_of(seat.task) != log[0].digest:
        return "the replayed reset gave another task"
    for number, logged in enumerate(log[1:], start=1):
        answer = _step(engine, seat, logged.action)
        if isinstance(answer, Failure):
            return f"replayed step {number} failed: {answer.reason}"
        if digest_of(answer.observation) != logged.digest:
            return f"replayed step {number} gave another observation"
    return None


def _step(engine: Engine, seat: Seat, action: object) -> Stepped | Failure:
    engine.post_steps({seat.index: action})
    return engine.gather_steps([seat.index], 1)[seat.index]
