"""A pool as its user sees it: checked calls, lists in the order of the workers, one entry for each whatever happens.

Misuse raises and runs nothing. Everything else is an entry: `results[i]`, `rewards[i]`, `done[i]`, `details[i]`. An
entry of a worker that failed is (None, 0.0, True, details with status and reason), or has None as reward where the
failure was not the environment's; it is repeated, and nothing is run, until that worker is reset. What happens to an
episode that is over follows `autoreset`:

    disabled    stepping it is an error; reset it, alone with `mask`
    next_step   the next step ignores its action and resets it
    same_step   it is reset within the step that ended it; the last observation is details["final_observation"]
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

from hotbed.errors import EpisodeDone, Error, InvalidRequest, NotReset, PoolBusy, PoolClosed
from hotbed.pools import entries, recovery
from hotbed.pools.arguments import brief, counted, masked, named
from hotbed.pools.contract import Autoreset, PoolOptions
from hotbed.pools.control import Control, Output
from hotbed.pools.engine import Engine
from hotbed.pools.entries import Batch, Entry
from hotbed.pools.lanes import Lanes
from hotbed.pools.recording import Recorder
from hotbed.pools.relayed import RelayedLanes
from hotbed.pools.replies import Failure, Stepped
from hotbed.pools.seats import Logged, Phase, Seat, digest_of
from hotbed.pools.seeds import Seed, episode_seed, given_seeds
from hotbed.pools.stopwatch import Stopwatch

CLOSE_TIMEOUT_S = 5.0


class VectorPool:
    """n environments, stepped together or as they finish."""

    def __init__(
        self,
        options: PoolOptions,
        control: Control,
        *,
        seed: bytes,
        slots: int | None = None,
        lanes: Lanes | RelayedLanes | None = None,
    ) -> None:
        self._options = options
        self._control = control
        self._seed = seed
        self._engine = Engine(options, control, slots=slots, lanes=lanes)
        self._seats = self._engine.seats
        self._sent: dict[int, Any] = {}
        self._resets: list[int] = []
        self._batch: list[int] | None = None
        self._details: list[dict[str, Any]] = [seat.detail("new") for seat in self._seats]
        self._lock = threading.RLock()
        self._held_up = Stopwatch(control.waited)
        self._recorder = Recorder(control.record) if options.record else None
        self._pid = os.getpid()
        self._closed = False

    @property
    def n(self) -> int:
        """How many environments."""
        return self._options.n

    @property
    def autoreset(self) -> Autoreset:
        """What happens to an episode that is over."""
        return self._options.autoreset

    @property
    def seed(self) -> str:
        """The pool's seed, 64 hex characters: give it to another pool for the same episodes."""
        return self._seed.hex()

    @property
    def details(self) -> list[dict[str, Any]]:
        """The last entry of `details` of each worker, a reset's included."""
        return list(self._details)

    def reset(self, seed: Seed | Sequence[Seed | None] | None = None, mask: Iterable[Any] | None = None) -> list[Any]:
        """Begin an episode in each worker, or those of the mask; their tasks in order (None outside the mask).

        One seed (an int, 64 hex characters or 32 bytes) is worker 0's, and worker i has seed + i; a list has one for
        each. A worker that failed gives a `FailedTask`, which is false.
        """
        with self._lock:
            self._check_open()
            chosen = masked(mask, self.n)
            self._check_free(chosen)
            given = given_seeds(seed, self.n) if seed is not None else [None] * self.n
            self._begin(chosen, given)
            tasks: list[Any] = [None] * self.n
            self._keep()
            for index in chosen:
                tasks[index], _, _, self._details[index] = entries.began(self._seats[index])
            return tasks

    def step(self, actions: Sequence[Any], mask: Iterable[Any] | None = None) -> Batch:
        """One action for each worker: (results, rewards, done, details), in order."""
        with self._lock:
            self.step_async(actions, mask)
            return self.step_wait()

    def step_async(self, actions: Sequence[Any], mask: Iterable[Any] | None = None) -> None:
        """Send the actions and return; `step_wait` gives what `step` would."""
        with self._lock:
            self._check_open()
            given = counted(actions, self.n)
            chosen = masked(mask, self.n)
            self._check_free(range(self.n))
            self._post({index: given[index] for index in chosen})
            self._batch = chosen

    def step_wait(self) -> Batch:
        """The results of the batch that `step_async` sent."""
        with self._lock:
            self._check_open()
            if self._batch is None:
                raise NotReset("step_wait without step_async", hint="call step, or step_async first")
            found = self._gather(self._batch, len(self._batch))
            self._batch = None  # not before: who was interrupted asks again
            return entries.columns([found.get(seat.index) or entries.skipped(seat) for seat in self._seats])

    def send(self, actions: Sequence[Any], workers: Sequence[int] | None = None) -> None:
        """Send actions to these workers, or to all, without waiting for any."""
        with self._lock:
            self._check_open()
            chosen = named(workers, self.n)
            self._check_free(chosen)
            self._post(dict(zip(chosen, counted(actions, len(chosen)), strict=True)))

    def recv(self, k: int | None = None) -> Batch:
        """The first `k` of the workers that were sent to, as they finish, or all: `details[j]["index"]` says which."""
        with self._lock:
            self._check_open()
            if self._batch is not None:
                raise PoolBusy("a batch is under way", hint="call step_wait first")
            waiting = list(self._sent)
            count = len(waiting) if k is None else k
            if type(count) is not int or not 1 <= count <= len(waiting):
                raise InvalidRequest(f"recv({k}) of {len(waiting)} workers under way", hint="send to some first")
            return entries.columns(list(self._gather(waiting, count).values()))

    def output(self, worker: int) -> Output:
        """What a worker's env.py has printed, head and tail."""
        with self._lock:
            self._check_open()
            return self._control.output(named([worker], self.n)[0])

    def close(self) -> None:
        """End every worker. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._pid == os.getpid():
                self._held_up.flush()
                if self._recorder is not None:
                    self._recorder.close()
                self._engine.close(timeout_s=min(CLOSE_TIMEOUT_S, self._options.step_timeout_s))
                self._control.close()

    def __enter__(self) -> VectorPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- checks: nothing has run when one of these raises ---

    def _check_open(self) -> None:
        if self._closed:
            raise PoolClosed("this pool was closed", hint="make another RLPool")
        if self._pid != os.getpid():
            raise PoolClosed(f"this pool belongs to process {self._pid}", hint="make an RLPool of this process's own")

    def _check_free(self, chosen: Iterable[int]) -> None:
        busy = [index for index in chosen if index in self._sent] if self._sent else ()
        if busy:
            raise PoolBusy(f"workers {brief(busy)} have not answered yet", hint="step_wait or recv comes first")

    # --- the work ---

    def _begin(self, chosen: Sequence[int], given: Sequence[int | None]) -> None:
        seeds = {}
        for index in chosen:
            seed = given[index]
            seeds[index] = episode_seed(self._seed, index, self._seats[index].episode + 1) if seed is None else seed
        try:
            with self._held_up:
                self._engine.begin(seeds)
        finally:
            if self._recorder is not None:
                for index in chosen:
                    self._recorder.began(self._seats[index])
        if self._options.recover == "replay":
            for index in chosen:
                seat = self._seats[index]
                seat.log.append(Logged(None, digest_of(seat.task)))

    def _begin_again(self, chosen: Sequence[int]) -> None:
        """What autoreset does. Where no episode could begin, the entries of these workers say why."""
        try:
            self._begin(chosen, [None] * self.n)
        except Error:
            if any(self._seats[index].phase is not Phase.FAILED for index in chosen):
                raise

    def _post(self, actions: dict[int, Any]) -> None:
        """Send what is to be sent: nothing to a failed worker, a reset instead of a step where autoreset says so."""
        seats = self._seats
        idle = [index for index in actions if seats[index].phase is not Phase.RUNNING]
        if idle:
            self._check_idle(idle)
            self._engine.post_steps({index: action for index, action in actions.items() if index not in idle})
            self._resets += idle if self._options.autoreset != "disabled" else ()
        else:
            self._engine.post_steps(actions)
        self._sent.update(actions)

    def _check_idle(self, idle: Sequence[int]) -> None:
        new = [index for index in idle if self._seats[index].phase is Phase.NEW]
        if new:
            raise NotReset(f"workers {brief(new)} have no episode yet", hint="call reset first")
        done = [index for index in idle if self._seats[index].phase is Phase.DONE]
        if done and self._options.autoreset == "disabled":
            raise EpisodeDone(
                f"the episodes of workers {brief(done)} are over",
                hint="reset them with reset(mask=done), leave them out with step(actions, mask=...), or set autoreset",
            )

    def _gather(self, chosen: Sequence[int], want: int) -> dict[int, Entry]:
        """Entries of the first `want`: those with nothing to wait for come first."""
        asked = [index for index in chosen if self._seats[index].busy]
        found = self._at_hand([index for index in chosen if index not in asked][:want]) if asked != chosen else {}
        with self._held_up:
            found.update(self._answered(self._engine.gather_steps(asked, want - len(found))))
        for index, entry in found.items():
            self._sent.pop(index, None)
            self._details[index] = entry[3]
        self._keep()
        return found

    def _keep(self) -> None:
        """Have what is over kept, before anybody is told that it is."""
        if self._recorder is not None:
            self._recorder.flush()

    def _at_hand(self, chosen: Sequence[int]) -> dict[int, Entry]:
        """Entries of seats that were sent nothing: those to reset begin anew, the others stand at their failure."""
        resets = [index for index in chosen if index in self._resets]
        self._begin_again(resets)
        self._resets = [index for index in self._resets if index not in resets]
        return {
            index: entries.began(seat) if index in resets else entries.failed(seat)
            for index, seat in ((index, self._seats[index]) for index in chosen)
        }

    def _answered(self, answers: dict[int, Stepped | Failure]) -> dict[int, Entry]:
        if self._options.recover == "replay":
            dead = [self._seats[index] for index, answer in answers.items() if recovery.is_recoverable(answer)]
            answers = {**answers, **recovery.recover(self._engine, dead, self._sent)}
        found = {index: self._settled(self._seats[index], answer) for index, answer in answers.items()}
        if self._options.autoreset == "same_step":
            ended = [index for index, entry in found.items() if entry[2]]
            self._begin_again(ended)
            found.update((index, entries.restarted(self._seats[index], found[index])) for index in ended)
        return found

    def _settled(self, seat: Seat, answer: Stepped | Failure) -> Entry:
        if self._recorder is not None:
            self._recorder.stepped(seat, self._sent[seat.index], answer)
        if isinstance(answer, Failure):
            return entries.failed(seat)
        seat.steps += 1
        if self._options.recover == "replay":
            seat.log.append(Logged(self._sent[seat.index], digest_of(answer.observation)))
        entry = entries.stepped(seat, answer)
        if entry[2]:
            seat.phase = Phase.DONE
        return entry
