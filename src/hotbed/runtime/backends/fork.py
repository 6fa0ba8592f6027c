"""The `fork` backend: warm templates on this host, and sandboxes forked from them.

Order matters at both ends. The object is made before the event loop runs, because it starts the launcher; `start` joins
it to the loop, finds out what this host allows and sweeps what an earlier run left. `close` ends spares, boxes and
templates, then the launcher, then removes the cgroups and the run's directory.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import resource
import socket
import tempfile
import time
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hotbed.errors import Error, IsolationUnavailable
from hotbed.runtime import bounds, crowd, planning, probe, reaper
from hotbed.runtime.backends.fork_template import ForkTemplate
from hotbed.runtime.base import BoxRequest, Limits, Solo, TemplateSpec
from hotbed.runtime.egress.outlets import Outlets
from hotbed.runtime.frost import Frost
from hotbed.runtime.groups import Groups, Slot
from hotbed.runtime.images.building import Builder
from hotbed.runtime.images.store import Hold, Store
from hotbed.runtime.launching import Launching
from hotbed.runtime.layers import LayerFiles, Layers
from hotbed.runtime.link import close_all
from hotbed.runtime.linux import cgroups, freezer
from hotbed.runtime.linux.pressure import Memory
from hotbed.runtime.lot import Lot
from hotbed.runtime.pulse import Pulse
from hotbed.runtime.replay.pinner import Pinner
from hotbed.runtime.sandboxes import ForkBox
from hotbed.runtime.snapshots import LiveFork
from hotbed.runtime.solo import SoloBox
from hotbed.runtime.templates import Ended, Spawn, TemplateProcess
from hotbed.runtime.warmth import Warmth, sum_of

log = logging.getLogger(__name__)

_TEND_S = 10.0
_PARK_S = 10.0
_BORN_WITH = ("memory_mib", "pids", "disk_mib", "files", "open_files")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSettings:
    """What can be chosen about the backend."""

    spares: int = 8
    vessels: int = 4
    doored: int = 8
    networks: int = 16
    run_dir: str = field(default_factory=tempfile.gettempdir)  # as TMPDIR says, and one that can be written
    cgroups: bool = True
    images: str = ""


class ForkBackend:
    """Warm forks with namespaces, on this kernel."""

    name = "fork"

    def __init__(self, settings: ForkSettings | None = None) -> None:
        """Starts the launcher; call it before the event loop runs."""
        self.settings = settings or ForkSettings()
        self.launching = Launching()
        self._pinner = Pinner(self.launching.supervise)
        self.livefork = LiveFork(self.launching.supervise)
        self.outlets = Outlets(partial(self.launching.supervise, "egress"))
        self.run = reaper.Run.begin(self.settings.run_dir)
        self.images = Store(Path(self.settings.images or f"{self.settings.run_dir}/hotbed-images-{os.getuid()}"))
        self.builder = Builder(self.launching.supervise, self.images)
        self.layers = Layers(Frost(None, self.run.name))
        self._groups: Groups | None = None
        self._layout = cgroups.Layout(kind="none")
        self._templates: dict[TemplateSpec, ForkTemplate] = {}
        self._boxes: dict[int, ForkBox | SoloBox] = {}
        self._numbers = itertools.count(1)
        self.lot = Lot()
        self._retired = {"cold": 0, "warm": 0}
        self._report: Mapping[str, Any] = {}
        self._closed = False
        self._tending: asyncio.Future[None] | None = None
        self.solos = False

    async def start(self) -> None:
        """Sweep, probe, get cgroups ready. Raises `IsolationUnavailable` with what to do about it."""
        self.launching.attach()
        loop = asyncio.get_running_loop()
        raise_descriptor_limit()
        await loop.run_in_executor(None, reaper.sweep, self.settings.run_dir)
        if self.settings.cgroups:
            self._layout = await loop.run_in_executor(None, probe.usable_cgroups, self.run.name, self.launching.pid)
        self._groups = Groups(self._layout, self.run.name, Limits(), Pulse(cgroups.current(self._layout)))
        await self._groups.fill()
        self.lot = Lot(Memory(self._layout.controllers.get("memory")))
        self._tending = asyncio.ensure_future(self._tend())
        self._report = probe.report(self._layout)
        self.solos = {"memory", "pids"} <= set(self._layout.controllers)  # else an agent must look after its memory
        self.layers = Layers(Frost(freezer.find(self._layout), self.run.name), self._groups)

    async def close(self) -> None:
        """End every template and sandbox."""
        if self._closed:
            return
        self._closed = True
        if self._tending is not None:
            self._tending.cancel()
        await asyncio.gather(*(stock.close() for template in self._templates.values() for stock in template.stocks))
        await asyncio.gather(*(box.kill() for box in tuple(self._boxes.values())), return_exceptions=True)
        for template in self._templates.values():
            await template.close()
        self._pinner.close()
        self.livefork.close()
        self.layers.close()
        self.outlets.close()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self.launching.close)
        if self._groups is not None:
            await loop.run_in_executor(None, self._groups.close)
        self.run.end()

    async def template(self, spec: TemplateSpec) -> ForkTemplate:
        """The warm template of a spec."""
        template = self._templates.get(spec)
        if template is None:
            looking = asyncio.get_running_loop().run_in_executor(None, planning.view_of, spec, self.images)
            try:
                view, hold = await asyncio.shield(looking)
            except asyncio.CancelledError:
                looking.add_done_callback(_let_go)
                raise
            made = ForkTemplate(spec, self, view, hold)
            template = self._templates.setdefault(spec, made)
            if template is not made:  # somebody else was first
                hold.close()
        await template.start()
        return template

    async def retire(self, spec: TemplateSpec) -> None:
        """End a template that nothing uses any more, and whatever still lives in it."""
        template = self._templates.pop(spec, None)
        if template is not None:
            for how, count in template.served.items():
                self._retired[how] += count
            await template.close()

    def expect(self, spec: TemplateSpec, width: int) -> None:
        """So many sandboxes of a template will be wanted at once; 0 takes it back. A hint, for an hour."""
        if (template := self._templates.get(spec)) is not None:
            template.spares.demand.expect(width, time.monotonic())
            template.spares.tend_soon()

    async def park(self, spec: TemplateSpec) -> None:
        """Wait until as many are parked as are kept, for a while at most."""
        if (template := self._templates.get(spec)) is not None:
            await asyncio.wait((asyncio.ensure_future(template.spares.wait_parked()),), timeout=_PARK_S)

    def warmth(self, name: str) -> Warmth:
        """How warm the templates of a name are: without guest programs and with."""
        return sum_of(template.warmth() for spec, template in self._templates.items() if spec.name == name)

    async def make_room(self) -> None:
        """For another template, if memory is short."""
        await crowd.make_room(self.lot.memory, self._templates.values())

    async def _tend(self) -> None:
        while True:
            await asyncio.sleep(_TEND_S)
            self.lot.look()
            await crowd.relieve(self.lot.memory, self._templates.values())
            for template in tuple(self._templates.values()):
                try:
                    await template.tend()
                except (Error, OSError, asyncio.TimeoutError) as error:  # the next time it may work
                    log.warning("event=tending_failed template=%s message=%r", template.spec.name, str(error))

    def capabilities(self) -> Mapping[str, Any]:
        """What this host allows, and which isolation results."""
        return self._report or probe.report(self._layout)

    def stats(self) -> Mapping[str, Any]:
        """Counts and depths."""
        templates = self._templates.values()
        served = {how: was + sum(t.served[how] for t in templates) for how, was in self._retired.items()}
        return {
            "boxes": len(self._boxes),
            "templates": sum(1 for template in templates if template.process is not None),
            "spares": sum(len(t.spares) + len(t.doored) + sum(map(len, t.pinned.values())) for t in templates),
            "vessels": sum(len(template.vessels) for template in templates),
            "outlets": len(self.outlets),
            "forks": sum(served.values()),
            "warm_hits": served["warm"],
            "snapshots": len(self.livefork),
            "snapshot_bytes": self.livefork.size,
            "layers": len(self.layers),
            "layer_bytes": self.layers.size,
            **(self._groups.stats() if self._groups is not None else {}),
        }

    def in_use(self) -> Set[int]:
        """The sandboxes that live and are not parked."""
        parked = {box.id for template in self._templates.values() for stock in template.stocks for box in stock}
        return self._boxes.keys() - parked

    async def start_process(
        self, spec: TemplateSpec, view: planning.View
    ) -> tuple[TemplateProcess, bounds.Bound | None]:
        """A template's process, within its bounds; it is not warm yet."""
        orders = planning.plan_of(spec, view, root=self.run.new_root(), networks=self.settings.networks)
        return await bounds.start(self.launching, self._groups_in_use(), spec.limits, orders)

    async def make_box(self, process: TemplateProcess, limits: Limits, request: BoxRequest, *, spare: bool) -> ForkBox:
        """Ask a template for one sandbox."""
        about: dict[str, Any] = {"spare": spare, "runner": request.ahead != "command", "layer": request.forkable}
        ground, pair = tuple[int, ...](), tuple[socket.socket, ...]()
        slot = await self._groups_in_use().take(limits)
        try:
            if isinstance(request.layer, LayerFiles):
                about["depth"], ground = request.layer.depth, (request.layer.descriptor(),)
            pair = socket.socketpair()
            number = next(self._numbers)
            box = ForkBox(number, pair[0], process, limits=limits, slot=slot, pinner=self._pinner, request=request)
        except BaseException:
            self._give_back(slot, *pair)
            close_all(ground)
            raise
        self._spawn(process, box, limits, pair[1].detach(), *ground, **about)
        return box

    async def make_solo(self, process: TemplateProcess, limits: Limits, request: BoxRequest, solo: Solo) -> SoloBox:
        """Ask a template for one sandbox that is a program."""
        slot = await self._groups_in_use().take(limits)
        try:
            box = SoloBox(next(self._numbers), process, slot=slot, request=request)
        except BaseException:
            self._give_back(slot)
            raise
        named = {"program": solo.program, "config": dict(solo.config)}
        self._spawn(process, box, limits, solo.channel.detach(), *box.prints, solo=named)
        return box

    def _groups_in_use(self) -> Groups:
        if self._groups is None:
            raise IsolationUnavailable("the backend has not been started")
        return self._groups

    def _give_back(self, slot: Slot | None, *ends: socket.socket) -> None:
        """What a sandbox had, or was to have: this process may be short of descriptors."""
        for end in ends:
            end.close()
        if slot is not None and self._groups is not None:
            self._groups.give_back(slot)

    def _spawn(
        self, process: TemplateProcess, box: ForkBox | SoloBox, limits: Limits, channel: int, *more: int, **about: Any
    ) -> None:
        self._boxes[box.id] = box
        slot = box.slot
        procs = slot.procs if slot else ()
        events = tuple(fd for fd in (slot.memory_events, slot.pids_events) if fd is not None) if slot else ()
        header = {
            "cgroups": len(procs),
            "events": [name for name in ("memory", "pids") if slot and getattr(slot, name + "_events") is not None],
            "limits": {name: getattr(limits, name) for name in _BORN_WITH},
            "hostname": box.request.hostname,
            "limit_data": slot is None,
            "cwd": "/work",
            **about,
        }
        fds = (channel, *procs, *events, *more)
        on_end = partial(self._on_end, box)
        process.spawn(Spawn(id=box.id, header=header, fds=fds, on_end=on_end, grounded="depth" in about))

    def _on_end(self, box: ForkBox | SoloBox, ended: Ended) -> None:
        box.on_process_end(ended)
        self._boxes.pop(box.id, None)
        self.layers.forget(box)
        self._give_back(box.slot)


def _let_go(looking: asyncio.Future[tuple[planning.View, Hold]]) -> None:
    """Nobody waits for a view any more."""
    if not looking.cancelled() and looking.exception() is None:
        looking.result()[1].close()


def raise_descriptor_limit() -> None:
    """A thousand sandboxes need a few thousand descriptors; the soft limit is often 1024."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
