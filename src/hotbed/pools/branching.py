"""Branching episodes: snapshots of environments, put back into workers of a pool, and one environment made into many.

A snapshot is the environment as it was between two steps, its process's memory and its sandbox's files, and what this
side knows of the episode. What is restored goes on from there, exactly: another worker, the same seed's sequence. A
*fork* gives each copy a seed of its own, derived from the pool's and the episode's, unless told otherwise: siblings
that drew the same random numbers would be one sample, not many. Only the generators that a program uses without naming
one (`random`, numpy's) are seeded anew; one that the environment keeps for itself goes on as it was.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Protocol, TypeVar

from hotbed.errors import InvalidRequest, NotReset, SandboxGone
from hotbed.pools.arguments import brief, named
from hotbed.pools.contract import PoolOptions
from hotbed.pools.control import Control
from hotbed.pools.lanes import Lanes
from hotbed.pools.relayed import RelayedLanes
from hotbed.pools.seats import Lane, Phase, Seat
from hotbed.pools.vector import VectorPool

Seeds = Literal["derived", "same"] | Sequence[int]

_LIMIT = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A snapshot, as the keeper of the workers names it."""

    id: str
    size: int
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Workers that were replaced, and why others were not."""

    failed: Mapping[int, str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()


class BranchControl(Control, Protocol):
    """A keeper of workers that can copy them."""

    def snapshot(self, index: int, *, skip: bool, verify: bool) -> Taken:
        """Take one. Raises `SnapshotUnsupported`."""
        ...

    def restore(self, snapshot: str, indices: Sequence[int], *, verify: bool) -> Restored:
        """Replace these workers; afterwards `open` hands out their lanes."""
        ...

    def fork(self, index: int, targets: Sequence[int], *, skip: bool, verify: bool) -> Restored:
        """Replace these workers by copies of one."""
        ...

    def free(self, snapshot: str) -> None:
        """Free one. Idempotent."""
        ...


class Snapshot:
    """An environment between two steps. It lives on the node until it is freed or the client's lease ends."""

    def __init__(self, taken: Taken, seat: Seat, control: BranchControl) -> None:
        self.id = taken.id
        self.size = taken.size
        self.skipped = taken.skipped
        self.worker = seat.index
        self._episode = _episode_of(seat)
        self._control = control
        self._freed = False

    @property
    def step(self) -> int:
        """How many steps of its episode it has seen."""
        return int(self._episode["steps"])

    @property
    def seed(self) -> int:
        """The seed of its episode."""
        return int(self._episode["seed"])

    def free(self) -> None:
        """Give its memory back. What was restored from it lives on. Idempotent."""
        if not self._freed:
            self._freed = True
            self._control.free(self.id)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()

    def __repr__(self) -> str:
        return f"<Snapshot {self.id} of worker {self.worker} after {self.step} steps, {self.size / 2**20:.1f} MiB>"


AnyPool = TypeVar("AnyPool", bound="BranchingPool")


class BranchingPool(VectorPool):
    """A pool whose environments can be copied."""

    def __init__(
        self,
        options: PoolOptions,
        control: BranchControl,
        *,
        seed: bytes,
        slots: int | None = None,
        lanes: Lanes | RelayedLanes | None = None,
    ) -> None:
        super().__init__(options, control, seed=seed, slots=slots, lanes=lanes)
        self._branches = control
        self._forks = 0

    def __enter__(self: AnyPool) -> AnyPool:
        return self

    def snapshot(self, i: int | None = None, *, skip: bool = False, verify: bool = False) -> Snapshot:
        """What worker `i`'s environment (the first one's) is now, its memory and its files; it goes on unharmed.

        Raises `SnapshotUnsupported` and names what cannot be copied: threads, child processes, sockets, pipes, shared
        mappings. With `skip` it is left out instead and listed in `Snapshot.skipped`. With `verify` what is restored
        can be compared page by page, at several times the cost.
        """
        with self._lock:
            seat = self._branchable(0 if i is None else i)
            return Snapshot(self._branches.snapshot(seat.index, skip=skip, verify=verify), seat, self._branches)

    def restore(
        self, snapshot: Snapshot, i: int | Sequence[int], *, seed: int | None = None, verify: bool = False
    ) -> None:
        """Put a snapshot into worker `i`, or each of several, whatever was there; its episode goes on from there.

        The snapshot may be of another pool of the same environment, template and limits; any other is refused with
        `SnapshotUnsupported`. With `seed` its generators are seeded anew. Raises `SandboxGone` if a worker could not be
        made: its entries then tell, as those of any worker that failed.
        """
        with self._lock:
            self._check_open()
            if not isinstance(snapshot, Snapshot):
                raise InvalidRequest(f"{snapshot!r:.60} is no snapshot", hint="pool.snapshot(i) takes one")
            chosen = named(i if isinstance(i, Sequence) else [i], self.n)
            self._check_free(chosen)
            done = self._branches.restore(snapshot.id, chosen, verify=verify)
            self._adopt(chosen, snapshot._episode, done, None if seed is None else dict.fromkeys(chosen, seed))

    def fork(
        self,
        i: int = 0,
        targets: Sequence[int] | None = None,
        *,
        n: int | None = None,
        seeds: Seeds = "derived",
        skip: bool = False,
        verify: bool = False,
    ) -> list[int]:
        """Make copies of worker `i` in other workers: those named, or the first `n` that run no episode.

        Returns which. Each copy gets a seed derived from the pool's seed; `seeds="same"` leaves every generator as it
        is, and a list gives each its own.
        """
        with self._lock:
            seat = self._branchable(i)
            chosen = self._targets(seat.index, targets, n)
            fresh = self._fork_seeds(seat, chosen, seeds)
            episode = _episode_of(seat)
            self._adopt(chosen, episode, self._branches.fork(seat.index, chosen, skip=skip, verify=verify), fresh)
            return chosen

    # --- the work ---

    def _branchable(self, i: int) -> Seat:
        self._check_open()
        seat = self._seats[named([i], self.n)[0]]
        self._check_free([seat.index])
        if seat.lane is not Lane.USED or seat.phase not in (Phase.RUNNING, Phase.DONE):
            raise NotReset(f"worker {seat.index} has no episode to copy", hint="reset it first")
        return seat

    def _targets(self, i: int, targets: Sequence[int] | None, n: int | None) -> list[int]:
        if (targets is None) == (n is None) or hasattr(targets, "__index__"):
            raise InvalidRequest("fork takes either targets or n", hint="pool.fork(0, [1, 2]) or pool.fork(0, n=2)")
        if targets is not None:
            chosen = list(named(targets, self.n))
        else:
            idle = [seat.index for seat in self._seats if seat.phase is not Phase.RUNNING and seat.index != i]
            if type(n) is not int or not 1 <= n <= len(idle):
                raise InvalidRequest(
                    f"{n!r} copies, and {len(idle)} other workers run no episode", hint="name the targets yourself"
                )
            chosen = idle[:n]
        if i in chosen:
            raise InvalidRequest(f"worker {i} cannot be a copy of itself", hint="take a snapshot and restore that")
        self._check_free(chosen)
        return chosen

    def _fork_seeds(self, seat: Seat, chosen: Sequence[int], seeds: Seeds) -> dict[int, int] | None:
        if seeds == "same":
            return None
        if seeds == "derived":
            self._forks += len(chosen)
            first = self._forks - len(chosen)
            return {index: fork_seed(self._seed, seat.seed, first + k) for k, index in enumerate(chosen)}
        given = list(seeds)
        if len(given) != len(chosen) or any(type(seed) is not int or seed < 0 for seed in given):
            raise InvalidRequest(f"seeds must be 'derived', 'same' or {len(chosen)} whole numbers, not {seeds!r:.80}")
        return {index: int(seed) for index, seed in zip(chosen, given, strict=True)}

    def _adopt(
        self, chosen: Sequence[int], episode: Mapping[str, Any], done: Restored, seeds: dict[int, int] | None
    ) -> None:
        """Take over replaced workers: their lanes, and what is known of the episode that they are in."""
        for index, reason in done.failed.items():
            self._engine.lose(index, reason)
        replaced = [index for index in chosen if index not in done.failed]
        for index in replaced:
            for name, value in copy.deepcopy(dict(episode)).items():
                setattr(self._seats[index], name, value)
        self._engine.adopt(replaced)
        if seeds is not None:
            self._reseed({index: seed for index, seed in seeds.items() if index in replaced})
        if self._recorder is not None:
            for index in chosen:
                self._recorder.began(self._seats[index], branched=True)
            self._recorder.flush()
        for index in chosen:
            self._details[index] = self._told(self._seats[index])
        self._complain(seat for seat in (self._seats[index] for index in chosen) if seat.phase is Phase.FAILED)

    def _reseed(self, seeds: Mapping[int, int]) -> None:
        for index, seed in seeds.items():
            self._seats[index].seed = seed
            self._seats[index].log.clear()  # a replay from the beginning would lead elsewhere
        self._engine.reseed(seeds)

    def _told(self, seat: Seat) -> dict[str, Any]:
        failure = seat.failure
        return seat.detail("forked") if failure is None else seat.detail(failure.status, failure.reason)

    def _complain(self, failed: Iterable[Seat]) -> None:
        lost = list(failed)
        if lost:
            reason = lost[0].failure.reason if lost[0].failure is not None else ""
            raise SandboxGone(f"workers {brief([seat.index for seat in lost])} could not be restored: {reason}")


def _episode_of(seat: Seat) -> dict[str, Any]:
    """What a seat knows of its episode, apart from where it runs."""
    names = ("phase", "episode", "steps", "seed", "closes", "task", "task_info", "failure", "recovered", "log")
    return {name: copy.deepcopy(getattr(seat, name)) for name in names}


def fork_seed(pool: bytes, episode: int, number: int) -> int:
    """The seed of a pool's n-th copy: the same for the same three, and unrelated to any other's."""
    digest = hashlib.sha256(b"hotbed fork\0%b\0%d\0%d" % (pool, episode, number)).digest()
    return int.from_bytes(digest[:8], "big") % _LIMIT
