"""Episodes as their pool's client saw them, on their way to whoever keeps them.

What passes between a client and its workers goes by the node (see `node/pool.py`), so the client is who can tell. An
episode is told of when it is over: done, failed, broken off by the next reset, replaced by a copy, or closed. It is
told of before the call that ended it returns, so whoever has seen its end finds it in the ledger. While the node cannot
be reached the last `KEPT` wait here; what is lost in the end is said by a warning.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hotbed.errors import Error
from hotbed.pools.plainly import text_of
from hotbed.pools.replies import Failure, Stepped
from hotbed.pools.seats import Phase, Seat
from hotbed.wire.pools import EPISODES_LIMIT, Episode

KEPT = 1024
TEXT_LIMIT = 4 << 20  # of an episode's actions and observations
_AT_ONCE = 8 << 20

UNFINISHED = "unfinished"


@dataclass(slots=True, kw_only=True)
class Running:
    """An episode that is not over."""

    number: int
    seed: int
    since_s: float
    actions: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    reward: float = 0.0
    size: int = 0
    unkept: int = 0
    branched: bool = False

    def add(self, action: str | None, shown: str) -> None:
        """A step, or the task; nothing more where it has grown too large."""
        self.size += len(action or "") + len(shown)
        if self.unkept or self.size > TEXT_LIMIT:
            self.unkept += 1
            return
        self.shown.append(shown)
        if action is not None:
            self.actions.append(action)


class Recorder:
    """The episodes of one pool's seats. Use it from one thread at a time."""

    def __init__(self, tell: Callable[[Sequence[Episode]], None]) -> None:
        self._tell = tell
        self._running: dict[int, Running] = {}
        self._over: list[Episode] = []
        self._lost = 0

    def began(self, seat: Seat, *, branched: bool = False) -> None:
        """A seat's episode has begun, or could not; `branched`: it goes on from a copy's."""
        self._end(seat.index, UNFINISHED, "")
        one = Running(number=seat.episode, seed=seat.seed, since_s=time.monotonic(), branched=branched)
        self._running[seat.index] = one
        if seat.phase is Phase.FAILED:
            failure = seat.failure
            self._end(seat.index, *(("lost", "") if failure is None else (failure.status, failure.reason)))
            return
        shown = {"step": seat.steps} if branched else {"task": seat.task}
        one.add(None, text_of(shown))

    def stepped(self, seat: Seat, action: Any, answer: Stepped | Failure) -> None:
        """What an action has shown."""
        one = self._running.get(seat.index)
        if one is None:
            return
        if isinstance(answer, Failure):
            one.add(text_of(action), text_of({"status": answer.status, "reason": answer.reason}))
            self._end(seat.index, answer.status, answer.reason)
            return
        one.reward += answer.reward
        shown = {name: getattr(answer, name) for name in ("observation", "reward", "terminated", "truncated")}
        one.add(text_of(action), text_of(shown))
        if answer.terminated or answer.truncated:
            self._end(seat.index, "ok", "")

    def flush(self) -> None:
        """Tell of what is over."""
        while self._over:
            part = self._part()
            try:
                self._tell(part)
            except Error:  # the next flush tries again
                self._lost += max(0, len(self._over) - KEPT)
                del self._over[:-KEPT]
                return
            del self._over[: len(part)]

    def _part(self) -> list[Episode]:
        """As many as go into one request."""
        part, size = self._over[:1], len(self._over[0].shown)
        for one in self._over[1:EPISODES_LIMIT]:
            size += len(one.shown) + len(one.actions)
            if size > _AT_ONCE:
                break
            part.append(one)
        return part

    def close(self) -> None:
        """The pool ends."""
        for index in tuple(self._running):
            self._end(index, UNFINISHED, "")
        self.flush()
        lost = self._lost + len(self._over)
        if lost:
            warnings.warn(f"{lost} episodes are not in the ledger: the node could not be reached", stacklevel=3)

    def _end(self, index: int, status: str, reason: str) -> None:
        one = self._running.pop(index, None)
        if one is None:
            return
        self._over.append(
            Episode(
                worker=index,
                number=one.number,
                seed=one.seed,
                status=status,
                reason=reason[:2000],
                reward=one.reward,
                actions=f"[{','.join(one.actions)}]",
                shown="\n".join(one.shown),
                unkept=one.unkept,
                branched=one.branched,
                took_ms=round((time.monotonic() - one.since_s) * 1e3, 3),
            )
        )
