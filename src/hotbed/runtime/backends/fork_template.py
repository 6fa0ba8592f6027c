"""One template of the fork backend: its process, started when it is needed, and what is parked of it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hotbed.errors import InvalidRequest, NotSupported, TemplateFailed
from hotbed.runtime import bounds, digests
from hotbed.runtime.base import Ahead, BoxRequest, Limits, TemplateSpec
from hotbed.runtime.demand import FADES_S
from hotbed.runtime.doored import Doored
from hotbed.runtime.images.store import Hold
from hotbed.runtime.layers import LayerFiles
from hotbed.runtime.planning import View
from hotbed.runtime.sandboxes import ForkBox
from hotbed.runtime.solo import SoloBox
from hotbed.runtime.spares import COST_MIB, Spares
from hotbed.runtime.starting import begin
from hotbed.runtime.templates import TemplateProcess
from hotbed.runtime.warmth import Warmth

if TYPE_CHECKING:
    from hotbed.runtime.backends.fork import ForkBackend

log = logging.getLogger(__name__)

_AHEAD: tuple[Ahead, ...] = ("code", "command")
_READY_TIMEOUT_S = 60.0
_STANDING_MIB = 64  # of a spare in which something runs or waits


class ForkTemplate:
    """One spec, its living process if it has one, and its spares."""

    def __init__(self, spec: TemplateSpec, backend: ForkBackend, view: View, hold: Hold) -> None:
        self.spec = spec
        self.digest = digests.of_spec(spec)
        self._backend = backend
        self._view = view
        self._hold = hold
        self.solos = backend.solos
        self._process: TemplateProcess | None = None
        self._starting = asyncio.Lock()
        lot, vessels = backend.lot, backend.settings.vessels
        cost = COST_MIB if spec.interpreter is None and spec.start is None else _STANDING_MIB
        self.spares = Spares(backend.settings.spares if spec.parks else 0, self._make_spare, lot=lot, cost_mib=cost)
        self.spares.freezing = lambda: backend.layers.frost
        self.vessels = Spares(vessels, self._make_vessel, lot=lot, from_first_use=True, most=vessels)
        self.pinned = {
            kind: Spares(self.spares.size, partial(self._make_pinned, kind), lot=lot, from_first_use=True)
            for kind in _AHEAD
        }
        self.doored = Doored(backend.settings.doored if spec.parks else 0, self._make_doored, lot)
        self.served = {"warm": 0, "cold": 0}
        self.used_s = time.monotonic()
        self.ready: Mapping[str, Any] = {}

    async def fork(self, request: BoxRequest) -> ForkBox | SoloBox:
        """A new sandbox: a parked one if it fits, else a fork, which may still be on its way when this returns."""
        box = await self._fork(request)
        if request.egress is not None and isinstance(box, ForkBox):
            await self._backend.outlets.attach(box, request.egress)
        return box

    async def _fork(self, request: BoxRequest) -> ForkBox | SoloBox:
        limits = request.limits or self.spec.limits
        self.used_s = time.monotonic()
        parked = await self._take_parked(request, limits)
        if parked is not None:
            return parked
        process = self._process
        if isinstance(request.layer, LayerFiles):
            process = request.layer.home
        elif process is None or not process.is_alive():
            process = await self.start()
        self.served["cold"] += 1
        if request.solo is not None:
            return await self._backend.make_solo(process, limits, request, request.solo)
        box = await self._backend.make_box(process, limits, request, spare=False)
        for stock in (self.spares, *self.pinned.values()):
            stock.wait_for(box.birth)
        return await begin(box, self.spec)

    async def _take_parked(self, request: BoxRequest, limits: Limits) -> ForkBox | None:
        """A spare or a vessel, if the request can be served with one and one is there."""
        began = time.monotonic_ns()
        if limits != self.spec.limits:
            return None
        if request.vessel:
            parked = self.vessels.take()
        elif not request.use_spare or request.forkable or request.layer is not None or request.hostname != "sandbox":
            return None
        else:
            parked = await self._take_spare(request)
            if parked is not None:
                parked.request = request
                parked.fork_time_ms = max(0.001, (time.monotonic_ns() - began) / 1e6)
        if parked is not None:
            parked.warm_hit = True
            self.served["warm"] += 1
        return parked

    async def _take_spare(self, request: BoxRequest) -> ForkBox | None:
        """The one that has most of what is wanted already."""
        if request.egress is not None:
            parked = self.doored.take(request.egress)
        else:
            parked = self.pinned[request.ahead].take() if request.ahead else None
        parked = parked or self.spares.take()
        if parked is None and self.spares.frozen:
            await self.spares.thaw()
            parked = self.spares.take()
        return parked

    def warmth(self) -> Warmth:
        """How many are parked, and how many forks they served."""
        stock = self.spares
        return Warmth(
            parked=len(stock) - stock.frozen,
            frozen=stock.frozen,
            kept=self._backend.lot.told_share(stock),
            forks=sum(self.served.values()),
            hits=self.served["warm"],
        )

    async def start(self) -> TemplateProcess:
        """The living process, started if there is none. Raises `TemplateFailed`, `IsolationUnavailable`."""
        if self.process is not None:
            return self.process
        async with self._starting:
            if self.process is not None:
                return self.process
            await self._backend.make_room()
            process, bound = await self._backend.start_process(self.spec, self._view)
            try:
                self.ready = await bounds.warmed(process, bound, _READY_TIMEOUT_S)
            except BaseException:  # also when cancelled: nobody else knows of it
                process.kill("it was not waited for")
                raise
            self._process = process
        self.spares.refill_soon()
        return process

    async def _make_spare(self, ahead: Ahead | None = None) -> ForkBox:
        if self._process is None or not self._process.is_alive():
            raise TemplateFailed("the template is not running")
        request = BoxRequest(ahead=ahead)
        box = await self._backend.make_box(self._process, self.spec.limits, request, spare=True)
        return await _or_end(box, self._begin_spare(box))

    async def _begin_spare(self, box: ForkBox) -> ForkBox:
        await box.ready()
        return await begin(box, self.spec)

    async def _make_pinned(self, kind: Ahead) -> ForkBox:
        box = await self._make_spare(kind)
        return await _or_end(box, self._pin_ahead(box, kind))

    async def _pin_ahead(self, box: ForkBox, kind: Ahead) -> ForkBox:
        try:
            await box.pin_ahead(kind)
        except (InvalidRequest, NotSupported) as error:  # no interpreter, or no way to pin one: rollouts say so
            log.info("event=not_pinned_ahead template=%s kind=%s message=%r", self.spec.name, kind, error.message)
            self.pinned[kind].size = 0
            raise
        return box

    async def _make_doored(self, ports: tuple[int, ...]) -> ForkBox:
        box = await self._make_spare()
        return await _or_end(box, self._park_doors(box, ports))

    async def _park_doors(self, box: ForkBox, ports: tuple[int, ...]) -> ForkBox:
        await self._backend.outlets.park(box, ports)
        return box

    async def _make_vessel(self) -> ForkBox:
        if self._process is None or not self._process.is_alive():
            raise TemplateFailed("the template is not running")
        request = BoxRequest(forkable=True, vessel=True)
        box = await self._backend.make_box(self._process, self.spec.limits, request, spare=False)
        return await _or_end(box, self._begin_vessel(box))

    async def _begin_vessel(self, box: ForkBox) -> ForkBox:
        await box.ready()
        await self._backend.livefork.park(box)
        return box

    async def tend(self) -> None:
        """Now and then: keep ready what is in demand; end a process that nobody wanted anything of for an hour.

        It is started again when somebody does.
        """
        for stock in self.stocks:
            await stock.tend()
        now = self.spares.clock()
        process, idle_s = self.process, min(now - self.used_s, self.spares.demand.idle_s(now))
        if (
            process is not None
            and idle_s > FADES_S
            and not process.boxes()
            and not self._backend.layers.stand_on(process)
        ):
            process.kill("nobody used it for an hour")

    @property
    def stocks(self) -> tuple[Spares, ...]:
        """All that is parked of it, by what it is for."""
        return self.spares, *self.pinned.values(), self.vessels, *self.doored.stocks()

    def is_idle(self) -> bool:
        """Whether its process lives and nobody has anything of it, but for what is parked."""
        process, parked = self.process, sum(map(len, self.stocks))
        return (
            process is not None
            and not self._starting.locked()
            and not any(stock.is_making for stock in self.stocks)
            and process.boxes() <= parked
            and not self._backend.layers.stand_on(process)
        )

    async def end_process(self, reason: str) -> None:
        """End the process and what is parked of it. It is started again when somebody wants one."""
        process = self.process
        if process is not None:
            process.kill(reason)
            await asyncio.gather(*(stock.let_go() for stock in self.stocks))

    @property
    def process(self) -> TemplateProcess | None:
        """The living process, if there is one."""
        return self._process if self._process is not None and self._process.is_alive() else None

    async def close(self) -> None:
        """End the spares and the process."""
        for stock in (self.spares, *self.pinned.values(), self.vessels):
            await stock.close()
        await self.doored.close()
        if self._process is not None:
            self._process.kill("the backend was closed")
        self._hold.close()


async def _or_end(box: ForkBox, made: Awaitable[ForkBox]) -> ForkBox:
    """What becomes of a box; one that nothing comes of is ended, for nobody else knows of it."""
    try:
        return await made
    except BaseException:
        await box.kill()
        raise
