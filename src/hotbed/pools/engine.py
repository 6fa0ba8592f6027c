"""The caller's side of a pool without its manners: begin episodes, step them, replace what failed.

`Engine` drives the lanes of n seats. It decides nothing about misuse or about the form of results; it keeps the
promise that one worker's trouble stays that worker's: whatever it does, every other seat gets its answer, and its own
seat gets a `Failure`.

At most `slots` requests are under way at a time (all n in default mode); the rest wait their turn here, and their
deadline starts when they are sent. A worker that broke off, went silent or ran into a limit is *buried*: its lane is
let go, the node ends it and says how it ended, and the seat gets a fresh one at its next episode.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hotbed.errors import BadAction, Error
from hotbed.guest.environments import values
from hotbed.pools import replies
from hotbed.pools.contract import PoolOptions
from hotbed.pools.control import Control, WorkerEnd
from hotbed.pools.lanes import Arrival, Lanes
from hotbed.pools.relayed import RelayedLanes
from hotbed.pools.replies import Failure, Stepped
from hotbed.pools.seats import Lane, Seat

STDERR_SHOWN = 2048


class Engine:
    """n seats and the lanes to their workers."""

    def __init__(
        self,
        options: PoolOptions,
        control: Control,
        *,
        slots: int | None = None,
        lanes: Lanes | RelayedLanes | None = None,
    ) -> None:
        self.seats = [Seat(index=index) for index in range(options.n)]
        self._options = options
        self._control = control
        self._slots = slots or options.n
        self._lanes = lanes if lanes is not None else Lanes()
        self._queue: deque[tuple[int, bytes, float]] = deque()
        self._under_way: set[int] = set()
        self._stash: dict[int, Arrival] = {}

    def close(self, *, timeout_s: float) -> None:
        """Give authors' close functions so long, then let go of every lane."""
        closing = [seat.index for seat in self.seats if seat.closes and seat.lane is not Lane.NONE and not seat.busy]
        for index in closing:
            self._submit(index, {"op": "close"}, timeout_s)
        self._gather(closing, len(closing))
        self._lanes.close()

    # --- episodes ---

    def begin(self, seeds: Mapping[int, int]) -> None:
        """Begin an episode in these seats. Afterwards each is RUNNING with a task, or FAILED."""
        for index, seed in seeds.items():
            self.seats[index].begin(seed)
        try:
            self.run_reset(list(seeds))
        except BaseException as stop:  # interrupted: an answer may still come, and would be taken for the next one's
            for index in seeds:
                self._forget(index)
                self.lose(index, stop.message if isinstance(stop, Error) else "its reset was interrupted")
            raise

    def run_reset(self, indices: Sequence[int]) -> None:
        """Get lanes where there are none to use, and ask each for the task of its seat's seed."""
        fresh = self._open([index for index in indices if self._needs_lane(self.seats[index])])
        for index in indices:
            seat = self.seats[index]
            if seat.lane is not Lane.NONE:
                seat.lane = Lane.USED
                self._submit(index, {"op": "reset", "seed": seat.seed}, self._options.reset_timeout_s)
        asked = [index for index in indices if self.seats[index].lane is not Lane.NONE]
        failures = self._hear_ready(fresh)
        for arrival in self._gather([index for index in asked if index not in failures], len(asked)):
            seat = self.seats[arrival.worker]
            answer = _trouble(arrival) or replies.read_reset(arrival.header or {}, seat.request_id)
            if isinstance(answer, Failure):
                failures[seat.index] = answer
            else:
                seat.take_task(answer)
                seat.step_ms = (arrival.at_s - seat.posted_s) * 1e3
        self._fail(failures)

    def _needs_lane(self, seat: Seat) -> bool:
        return seat.lane is Lane.NONE or (seat.lane is Lane.USED and self._options.mode == "boltz")

    def _open(self, indices: Sequence[int]) -> list[int]:
        """Fresh workers for these seats; the seats that got one."""
        if not indices:
            return []
        opened, deadline_s = [], time.perf_counter() + self._options.reset_timeout_s
        for grant in self._control.open(indices):
            seat = self.seats[grant.index]
            self._lanes.detach(seat.index)
            if grant.reason:
                seat.lane = Lane.NONE
                seat.fail(Failure(status="lost", reason=grant.reason))
                continue
            self._lanes.attach(seat.index, grant.sock, deadline_s=deadline_s)
            seat.lane, seat.isolation = Lane.FRESH, grant.isolation
            opened.append(seat.index)
        return opened

    def adopt(self, indices: Sequence[int]) -> None:
        """Take the lanes of workers that are in an episode already."""
        for grant in self._control.open(indices) if indices else ():
            seat = self.seats[grant.index]
            if grant.reason:
                self.lose(seat.index, grant.reason)
            else:
                self._lanes.attach(seat.index, grant.sock, deadline_s=None)
                seat.lane, seat.isolation = Lane.USED, grant.isolation

    def lose(self, index: int, reason: str) -> None:
        """A worker is gone, and not by its own doing."""
        self._lanes.detach(index)
        self.seats[index].lane = Lane.NONE
        self.seats[index].fail(Failure(status="lost", reason=reason))

    def reseed(self, seeds: Mapping[int, int]) -> None:
        """Seed the generators of idle workers anew. A seat whose worker fails at it is FAILED."""
        for index, seed in seeds.items():
            self._submit(index, {"op": "reseed", "seed": seed}, self._options.step_timeout_s)
        failures = {}
        for arrival in self._gather(list(seeds), len(seeds)):
            seat = self.seats[arrival.worker]
            failure = _trouble(arrival) or replies.read_done(arrival.header or {}, seat.request_id)
            if failure is not None:
                failures[seat.index] = failure
        self._fail(failures)

    def _hear_ready(self, fresh: Sequence[int]) -> dict[int, Failure]:
        """The first word of fresh workers. It does not count as an answer, so it frees no slot."""
        failures = {}
        for arrival in self._lanes.collect(fresh, len(fresh)):
            failure = _trouble(arrival) or replies.read_ready(arrival.header or {})
            if failure is None:
                self.seats[arrival.worker].closes = bool((arrival.header or {})["closes"])
            else:
                failures[arrival.worker] = failure
                self._forget(arrival.worker)
        return failures

    # --- steps ---

    def post_steps(self, actions: Mapping[int, Any]) -> None:
        """Send actions. Raises `BadAction`, with nothing sent, if one of them cannot cross."""
        frames = [(index, self._step_frame(index, action)) for index, action in actions.items()]
        timeout_s = self._options.step_timeout_s
        for index, frame in frames:
            self.seats[index].busy = True
            self._send_or_queue(index, frame, timeout_s)

    def _step_frame(self, index: int, action: Any) -> bytes:
        try:
            return self._frame(index, {"op": "step", "action": action})
        except (TypeError, ValueError) as error:
            raise BadAction(f"the action for worker {index} cannot be sent: {error}") from None

    def gather_steps(self, indices: Collection[int], want: int) -> dict[int, Stepped | Failure]:
        """Wait until `want` of these have answered or failed; a failed seat has been settled."""
        answers: dict[int, Stepped | Failure] = {}
        failures: dict[int, Failure] = {}
        for arrival in self._gather(indices, want):
            index, at_s, header, _, _ = arrival
            seat = self.seats[index]
            seat.busy = False
            seat.step_ms = max(0.0, at_s - seat.posted_s) * 1e3  # a lane may have closed before it was asked
            answer = _silence(arrival) if header is None else replies.read_step(header, seat.request_id)
            answers[index] = answer
            if isinstance(answer, Failure):
                failures[index] = answer
        if failures:
            answers.update(self._fail(failures))
        return answers

    # --- requests under way ---

    def _submit(self, index: int, request: dict[str, Any], timeout_s: float) -> None:
        self._send_or_queue(index, self._frame(index, request), timeout_s)

    def _frame(self, index: int, request: dict[str, Any]) -> bytes:
        request["id"] = self.seats[index].next_request()
        return values.pack(request)

    def _send_or_queue(self, index: int, frame: bytes, timeout_s: float) -> None:
        if len(self._under_way) < self._slots:
            self._send(index, frame, timeout_s)
        else:
            self._queue.append((index, frame, timeout_s))

    def _send(self, index: int, frame: bytes, timeout_s: float) -> None:
        now = time.perf_counter()
        self.seats[index].posted_s = now
        self._under_way.add(index)
        self._lanes.post(index, frame, deadline_s=now + timeout_s)

    def _gather(self, indices: Collection[int], want: int) -> list[Arrival]:
        """The first arrivals of these seats, while queued requests go out as slots come free."""
        if not self._queue and not self._stash:
            got = self._lanes.collect(indices, want)
            self._under_way.difference_update(arrival.worker for arrival in got)
            return got
        return self._gather_in_turns(set(indices), want)

    def _gather_in_turns(self, wanted: set[int], want: int) -> list[Arrival]:
        got = [self._stash.pop(index) for index in list(wanted) if index in self._stash][:want]
        wanted.difference_update(arrival.worker for arrival in got)
        while len(got) < want and wanted & (self._under_way | {index for index, _, _ in self._queue}):
            pool, many = (self._under_way, 1) if self._queue else (self._under_way & wanted, want - len(got))
            for arrival in self._lanes.collect(pool, many):
                self._under_way.discard(arrival.worker)
                if arrival.worker in wanted and len(got) < want:
                    got.append(arrival)
                    wanted.discard(arrival.worker)
                else:
                    self._stash[arrival.worker] = arrival
            while self._queue and len(self._under_way) < self._slots:
                self._send(*self._queue.popleft())
        return got

    def _forget(self, index: int) -> None:
        self._under_way.discard(index)
        self._stash.pop(index, None)
        self._queue = deque(item for item in self._queue if item[0] != index)

    # --- failures ---

    def _fail(self, failures: Mapping[int, Failure]) -> dict[int, Failure]:
        """Bury the workers that cannot be used again, and settle each failure now that it is known how they ended."""
        ends = self._bury({index: failure.status for index, failure in failures.items() if failure.fatal})
        settled = {index: _explained(failure, ends.get(index)) for index, failure in failures.items()}
        for index, failure in settled.items():
            self.seats[index].fail(failure)
        return settled

    def _bury(self, troubles: Mapping[int, str]) -> Mapping[int, WorkerEnd]:
        for index in troubles:
            self._forget(index)
            self._lanes.detach(index)
            self.seats[index].lane = Lane.NONE
        if not troubles:
            return {}
        try:
            return self._control.end(troubles)
        except Error as error:
            return {index: WorkerEnd(index=index, status="lost", reason=str(error)) for index in troubles}


def _trouble(arrival: Arrival) -> Failure | None:
    """A lane's trouble, if that is what arrived."""
    return _silence(arrival) if arrival.header is None else None


def _silence(arrival: Arrival) -> Failure:
    """A lane's trouble as a failure; how the worker ended is not known yet."""
    if arrival.trouble == "protocol":
        return replies.violation(arrival.reason)
    return Failure(status=arrival.trouble or "closed", reason=arrival.reason)


def _explained(failure: Failure, end: WorkerEnd | None) -> Failure:
    """A failure in words, now that it is known how the worker ended."""
    if failure.status == "timeout":
        reason = "timeout: no answer in time; the worker was killed"
        return Failure(status="timeout", reason=_with_stderr(reason, end))
    if failure.status != "closed":
        return failure
    if end is None or end.status == "lost":
        return Failure(status="lost", reason=end.reason if end is not None else failure.reason)
    if end.signal:
        what = f"was killed by signal {end.signal}"
    else:
        what = f"ended with exit code {end.exit_code}" if end.exit_code is not None else "closed its lane"
    status = end.status if end.status in _DEATHS else "exit"
    return Failure(status=status, reason=_with_stderr(f"{status}: the environment's process {what}", end))


_DEATHS = ("exit", "signal", "oom", "pids", "disk", "output")


def _with_stderr(reason: str, end: WorkerEnd | None) -> str:
    tail = end.stderr.strip()[-STDERR_SHOWN:] if end is not None else ""
    return f"{reason}\n{tail}" if tail else reason
