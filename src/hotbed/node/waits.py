"""How long each client had requests in flight, and what those were doing: what a trainer can have waited for.

The node cannot see a trainer's GPU. It sees when a client has something in flight here and when it has nothing, and
that is what is kept: *bursts*, times during which at least one request was in flight, each with its seconds divided
among what the requests were doing. An instant with n requests in flight counts 1/n for each of them, under its phase:

    queue   no turn yet: the node is full, or the tenant at its share
    fork    a sandbox is being made
    exec    a program runs
    grade   candidates are graded, their sandboxes and the judge's included
    step    environments of a pool step: where the node passes the frames on, or as the pool's client tells

To keep that exact at the cost of a few additions a request, a client's meter holds one number, the integral of
1/(requests in flight) over time: what a request adds to a phase is the difference of that number between the phase's
beginning and its end.

Bursts become *steps* when somebody looks: a step ends where a client was silent for some time (see `steps`). All of it
is in memory, bounded, and gone with the node.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hotbed.node.leases import Lease, tenant_id

Phase = Literal["queue", "fork", "exec", "grade", "step"]
PHASES: tuple[Phase, ...] = ("queue", "fork", "exec", "grade", "step")

CLIENTS = 64
BURSTS = 2048
SPANS = 256  # of one message about a pool
NEAR_S = 0.05  # a pause shorter than this is none
LONGEST_S = 60.0  # a burst without an end is kept in pieces of this length


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A time during which a client had requests in flight. `busy_s` leaves pauses too short to count out."""

    begun_s: float
    ended_s: float
    busy_s: float
    requests: int
    seconds: Mapping[Phase, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From the end of the step before to the end of its own requests. Of the first one the beginning is not known."""

    begun_s: float
    ended_s: float
    waited_s: float
    requests: int
    seconds: Mapping[Phase, float]
    first: bool = False

    @property
    def share(self) -> float:
        """What part of it the client had requests in flight, from 0 to 1."""
        length = self.ended_s - self.begun_s
        return min(1.0, self.waited_s / length) if length > 0 else 1.0


def steps(bursts: Sequence[Burst], *, pause_s: float) -> list[Step]:
    """Bursts as steps: a pause of at least `pause_s` is between steps, a shorter one within."""
    joined: list[list[Burst]] = []
    for burst in bursts:
        if joined and burst.begun_s - joined[-1][-1].ended_s < pause_s:
            joined[-1].append(burst)
        else:
            joined.append([burst])
    begins = [joined[0][0].begun_s, *(group[-1].ended_s for group in joined[:-1])] if joined else []
    return [
        Step(
            begun_s=begun,
            ended_s=group[-1].ended_s,
            waited_s=sum(burst.busy_s for burst in group),
            requests=sum(burst.requests for burst in group),
            seconds=total(burst.seconds for burst in group),
            first=number == 0,
        )
        for number, (begun, group) in enumerate(zip(begins, joined, strict=True))
    ]


def total(parts: Iterable[Mapping[Phase, float]]) -> dict[Phase, float]:
    """Seconds by phase, added up."""
    found = dict.fromkeys(PHASES, 0.0)
    for part in parts:
        for phase, seconds in part.items():
            found[phase] += seconds
    return found


@dataclass(slots=True, eq=False)
class Meter:
    """One client's bursts, and the one that goes on."""

    client: str
    tenant: str
    bursts: deque[Burst] = field(default_factory=lambda: deque(maxlen=BURSTS))
    unit: float = 0.0  # the integral of 1/(requests in flight)
    open: set[Wait] = field(default_factory=set)
    _at_s: float = 0.0
    _begun_s: float = 0.0
    _busy_s: float = 0.0
    _requests: int = 0
    _seconds: dict[Phase, float] = field(default_factory=dict)

    def advance(self, now_s: float) -> None:
        """Account for the time since the last event."""
        if self.open:
            self.unit += (now_s - self._at_s) / len(self.open)
            self._busy_s += now_s - self._at_s
            self._at_s = now_s

    def join(self, wait: Wait, now_s: float) -> None:
        """One more request is in flight."""
        self.advance(now_s)
        if not self.open:
            if not self._requests or now_s - self._at_s >= NEAR_S:
                self.cut(now_s)
            self._at_s = now_s
        self.open.add(wait)
        self._requests += 1

    def add(self, phase: Phase, seconds: float) -> None:
        """A request has spent so much of the client's time in a phase."""
        self._seconds[phase] = self._seconds.get(phase, 0.0) + seconds

    def leave(self, wait: Wait, now_s: float) -> None:
        """A request is answered."""
        self.advance(now_s)
        wait.credit()
        self.open.discard(wait)
        if now_s - self._begun_s >= LONGEST_S:
            self.cut(now_s)

    def cut(self, now_s: float) -> None:
        """End the burst; what is still in flight goes on in the next one."""
        for wait in self.open:
            wait.credit()
        if self._requests or self._busy_s:
            self.bursts.append(self._burst(self._seconds))
        self._begun_s, self._busy_s, self._requests, self._seconds = now_s, 0.0, 0, {}

    def told(self, now_s: float) -> list[Burst]:
        """Every burst so far, the one that goes on as far as it has come."""
        self.advance(now_s)
        for wait in self.open:
            wait.credit()
        now = [self._burst(dict(self._seconds))] if self._requests or self._busy_s else []
        return [*self.bursts, *now]

    def _burst(self, seconds: Mapping[Phase, float]) -> Burst:
        return Burst(
            begun_s=self._begun_s,
            ended_s=self._at_s,
            busy_s=self._busy_s,
            requests=self._requests,
            seconds=seconds,
        )


class Wait:
    """One request in flight. A context manager; it begins in the queue unless told otherwise."""

    __slots__ = ("_clock", "_meter", "_phase", "_since")

    def __init__(self, meter: Meter, clock: Callable[[], float], phase: Phase) -> None:
        self._meter = meter
        self._clock = clock
        self._phase = phase
        meter.join(self, clock())
        self._since = meter.unit

    def __enter__(self) -> Wait:
        return self

    def __exit__(self, *_: object) -> None:
        self._meter.leave(self, self._clock())

    def enter(self, phase: Phase) -> None:
        """It does something else from now on."""
        self._meter.advance(self._clock())
        self.credit()
        self._phase = phase

    def forked(self, fork_ms: float, exec_ms: float) -> None:
        """What has passed in this phase was a fork and an exec in one, of these lengths."""
        self._meter.advance(self._clock())
        whole = max(fork_ms + exec_ms, 1e-9)
        fork = (self._meter.unit - self._since) * fork_ms / whole
        self._since += fork
        self._meter.add("fork", fork)
        self.credit()

    def credit(self) -> None:
        """Add what has passed in its phase."""
        self._meter.add(self._phase, self._meter.unit - self._since)
        self._since = self._meter.unit


class Waits:
    """Every client's meter, the most recent `CLIENTS` of them."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._meters: OrderedDict[str, Meter] = OrderedDict()

    def __iter__(self) -> Iterator[Meter]:
        return iter(tuple(self._meters.values()))

    def begin(self, lease: Lease | None, phase: Phase = "queue") -> Wait:
        """A request of a client came in. Who holds no lease is one client with all others of the tenant like that."""
        tenant = tenant_id(lease)
        client = lease.id if lease is not None and lease.held else f"-{tenant}"
        shown = client if lease is not None and lease.held else ""
        return Wait(self._meter(client, shown, tenant), self.clock, phase)

    def note_pool(self, pool_id: str, lease: Lease | None, spans: object) -> None:
        """What a pool's client on this machine tells of waiting for it: a client of its own. Nonsense is ignored."""
        now_s = self.clock()
        good = [span for span in spans[:SPANS] if _is_span(span)] if isinstance(spans, list) else []
        if not good:
            return
        meter = self._meter(pool_id, pool_id, tenant_id(lease))
        for begun_ago_s, ended_ago_s, waited_s, count in good:
            if meter.bursts and now_s - begun_ago_s < meter.bursts[-1].ended_s:
                continue  # told twice, or out of order
            meter.bursts.append(
                Burst(
                    begun_s=now_s - begun_ago_s,
                    ended_s=now_s - ended_ago_s,
                    busy_s=waited_s,
                    requests=count,
                    seconds={"step": waited_s},
                )
            )

    def _meter(self, client: str, shown: str, tenant: str) -> Meter:
        meter = self._meters.get(client)
        if meter is None:
            meter = self._meters[client] = Meter(shown, tenant)
            while len(self._meters) > CLIENTS:
                self._meters.popitem(last=False)
        self._meters.move_to_end(client)
        return meter


def _is_span(span: object) -> bool:
    """Whether it is four numbers that can be true."""
    if not isinstance(span, list) or len(span) != 4:
        return False
    if any(type(number) not in (int, float) or not 0 <= number < 1e6 for number in span):
        return False
    begun_ago_s, ended_ago_s, waited_s, count = span
    return ended_ago_s <= begun_ago_s and waited_s <= begun_ago_s - ended_ago_s + 1e-3 and type(count) is int
