"""The bakes of a node: one for each template that is more than a warm interpreter of this host.

A bake is named by its template. Asked for again with the same content it is the same bake, whatever phase it is in;
with other content it is refused, unless the earlier one failed. Phases only go forward. It is remembered from before
the first step, so a node that was killed takes it up again when it starts, and goes through what is done already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from hotbed.errors import BakeFailed, Error, InvalidRequest, NoSpace, UnknownTemplate
from hotbed.node.bakes.baker import Baked, Baker, GetPolicy
from hotbed.node.bakes.journal import Entry, Journal
from hotbed.node.bakes.recipe import Recipe
from hotbed.node.templates import TemplateNetwork, Templates
from hotbed.runtime.base import Backend, Limits, TemplateSpec
from hotbed.runtime.images import collecting
from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.standing import Interpreter, Start
from hotbed.wire.templates import PHASES, TemplateRow

log = logging.getLogger(__name__)

AT_ONCE = 2
LOG_TAIL = 16_000
_ATTEMPTS = 2
_FINAL = ("Live", "Failed")


class Bake:
    """One bake, from outside."""

    def __init__(self, entry: Entry, journal: Journal) -> None:
        self.entry = entry
        self.task: asyncio.Task[None] | None = None
        self._journal = journal

    def phase(self, name: str) -> None:
        """A phase begins, unless it did already, in an earlier attempt."""
        if PHASES.index(name) > PHASES.index(self.entry.phase):
            self.change(phase=name)
        self.entry = replace(self.entry, progress={})

    def change(self, **changes: Any) -> None:
        """Note and remember something."""
        self.entry = replace(self.entry, **changes)
        self._journal.write(self.entry)

    def progress(self, about: Mapping[str, Any]) -> None:
        """How far the present step is."""
        self.entry = replace(self.entry, progress={key: value for key, value in about.items() if key != "op"})

    def log(self, text: str) -> None:
        """What a command printed."""
        self.entry = replace(self.entry, log=(self.entry.log + text)[-LOG_TAIL:])


class Bakes:
    """By template name."""

    def __init__(self, backend: Backend, templates: Templates, *, home: str, quota_bytes: int) -> None:
        self._backend = backend
        self._templates = templates
        self._journal = Journal(home)
        self._quota_bytes = quota_bytes
        self._bakes: dict[str, Bake] = {}
        self.policy: GetPolicy = lambda recipe: None  # the node knows what may be reached
        self._baker = Baker(backend, parent=self._parent, policy=lambda recipe: self.policy(recipe))
        self._turns = asyncio.Semaphore(AT_ONCE)
        if (builder := getattr(backend, "builder", None)) is not None:
            builder.most_bytes = min(builder.most_bytes, quota_bytes)
        templates.bake_phase = self._phase

    def at_work(self) -> int:
        """How many sandboxes are used for bakes now."""
        return self._baker.at_work

    def resume(self) -> None:
        """Take up what an earlier run of the node left. Call it once, when the backend has started."""
        for entry in self._journal.read():
            name = entry.recipe.name
            bake = self._bakes[name] = Bake(entry, self._journal)
            if entry.phase == "Live" and self._is_here(entry):
                self._templates.adopt(_spec_of(entry), network_of(entry.recipe))
            elif entry.phase != "Failed":
                bake.change(phase="Pending" if entry.phase == "Live" else entry.phase)
                self._begin(bake)

    def _is_here(self, entry: Entry) -> bool:
        store = getattr(self._backend, "images", None)
        return entry.image in ("", "host") or (store is not None and store.find(entry.image) is not None)

    def start(self, recipe: Recipe, *, width: int) -> Bake:
        """The bake of a recipe, begun if it is new. Raises `InvalidRequest`, `AtCapacity`."""
        TemplateSpec(name=recipe.name, preload=recipe.preload, env=recipe.env)  # refused now, not kept as a failure
        known = self._bakes.get(recipe.name)
        if known is not None and known.entry.phase != "Failed":
            if known.entry.recipe != recipe:
                raise InvalidRequest(
                    f"template {recipe.name!r} exists with other content", hint="choose another name, or delete it"
                )
            known.change(width=width)
            return known
        if known is None:
            unborn = [bake for bake in self._bakes.values() if bake.entry.phase != "Live"]
            self._templates.check_new(recipe.name, besides=len(unborn))
        bake = self._bakes[recipe.name] = Bake(Entry(recipe=recipe, width=width), self._journal)
        bake.change()
        self._begin(bake)
        return bake

    def _begin(self, bake: Bake) -> None:
        bake.task = asyncio.ensure_future(self._run(bake))  # noqa: TID251 - owned by the bake, ended by `cancel` and `close`

    async def _run(self, bake: Bake) -> None:
        """To its end, which is never an exception."""
        async with self._turns:
            while bake.entry.phase not in _FINAL:
                try:
                    baked = await self._attempt(bake)
                    self._templates.adopt(baked.spec, network_of(bake.entry.recipe))
                    await self._park(bake)
                    self._become_live(bake, baked)
                    await self.collect()
                except Error as error:
                    self._fail(bake, error)
                except Exception as error:
                    log.exception("event=bake_broke template=%s", bake.entry.recipe.name)
                    self._fail(bake, Error(f"{type(error).__name__}: {error}"))

    async def _attempt(self, bake: Bake) -> Baked:
        await self.collect()
        try:
            return await self._baker.bake(bake.entry.recipe, bake)
        except NoSpace:
            await self.collect(to_bytes=0)
            raise

    async def _park(self, bake: Bake) -> None:
        """Have as many parked as are expected, before it is said to be live."""
        name = bake.entry.recipe.name
        if bake.entry.width > 1:
            bake.progress({"step": "parking", "width": bake.entry.width})
            await self._templates.expect(name, bake.entry.width)
            await self._templates.park(name)

    def _become_live(self, bake: Bake, baked: Baked) -> None:
        spec, state = baked.spec, baked.live_state
        bake.change(phase="Live", error="", image=spec.image, live_state=state, spec=asdict(spec), progress={})
        log.info("event=baked template=%s image=%s", spec.name, spec.image)

    def _fail(self, bake: Bake, error: Error) -> None:
        fails = bake.entry.fails + 1
        may_pass = not isinstance(error, InvalidRequest) or bake.entry.recipe.source.kind == "registry"
        again = fails < _ATTEMPTS and may_pass and not isinstance(error, BakeFailed)
        text = f"{error.message} (hint: {error.hint})" if error.hint else error.message
        log.warning("event=bake_failed template=%s fails=%d error=%s", bake.entry.recipe.name, fails, text)
        bake.change(phase=bake.entry.phase if again else "Failed", fails=fails, error=text)

    async def collect(self, *, to_bytes: int | None = None) -> int:
        """Remove images that no template here has, the longest unused first, until the store is within its quota."""
        store = getattr(self._backend, "images", None)
        if store is None:
            return 0
        keep = {spec.image for spec in self._templates.specs()}
        quota = self._quota_bytes if to_bytes is None else to_bytes
        return await asyncio.to_thread(collecting.collect, store, quota_bytes=quota, keep=keep)

    def _phase(self, name: str) -> str:
        bake = self._bakes.get(name)
        return bake.entry.phase if bake is not None else ""

    def find(self, name: str) -> Bake | None:
        """The bake of that name."""
        return self._bakes.get(name)

    def names(self) -> tuple[str, ...]:
        """Every template that was baked or is being baked here."""
        return tuple(self._bakes)

    async def images(self) -> list[ImageRecord]:
        """Every image that is unpacked here, the latest used first."""
        store = getattr(self._backend, "images", None)
        records = await asyncio.to_thread(store.records) if store is not None else []
        return [record for _, record in reversed(records)]

    def row(self, name: str) -> TemplateRow:
        """A template as listed, with how it was baked. Raises `UnknownTemplate`."""
        bake = self._bakes.get(name)
        if bake is None:
            return self._templates.row(name)
        entry = bake.entry
        live = entry.phase == "Live" and name in self._templates.names
        row = self._templates.row(name) if live else TemplateRow(id=name, name=name, image=entry.recipe.image)
        return replace(
            row,
            image=entry.recipe.image,
            phase=entry.phase,
            error=entry.error if entry.phase == "Failed" else row.error,
            build_fails=entry.fails,
            declared=self._templates.declared(name, entry.width) if live else entry.width,
            warm=row.warm if live and self._templates.warmth(name) else entry.width if live else 0,
            live_state=entry.live_state,
            preload=entry.recipe.preload,
            progress=entry.progress,
            log=entry.log,
            **self._about_image(entry),
        )

    def _about_image(self, entry: Entry) -> dict[str, Any]:
        store = getattr(self._backend, "images", None)
        record = store.find(entry.image) if store is not None and entry.image not in ("", "host") else None
        if record is None:
            return {}
        notes = (*record.notes, *((record.python_note,) if record.python_note else ()))
        return {
            "python": record.python.version if record.python is not None else "",
            "size_bytes": record.size,
            "layers": len(record.layers) + len(record.over),
            "skipped": dict(record.skipped),
            "notes": notes,
        }

    async def remove(self, name: str) -> None:
        """Give up a bake, or forget what it made. Nothing may live of it. Raises `UnknownTemplate`."""
        bake = self._bakes.get(name)
        if bake is None and name not in self._templates.names:
            raise UnknownTemplate(f"no template {name[:64]!r}")
        if bake is not None and bake.task is not None:
            bake.task.cancel()
            await asyncio.gather(bake.task, return_exceptions=True)
        if name in self._templates.names:
            await self._templates.remove(name)
        self._bakes.pop(name, None)
        self._journal.forget(name)

    def _parent(self, name: str) -> TemplateSpec:
        """The spec of the template that a recipe starts from, by the node's name for it. Raises `UnknownTemplate`."""
        return self._templates.spec(name)

    async def close(self) -> None:
        """Stop; what is under way is taken up by the next node."""
        tasks = [bake.task for bake in self._bakes.values() if bake.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _spec_of(entry: Entry) -> TemplateSpec:
    """The spec that a finished bake made."""
    plain, start = dict(entry.spec), entry.spec.get("start")
    return TemplateSpec(
        name=plain["name"],
        image=plain["image"],
        preload=tuple(plain["preload"]),
        programs=tuple(plain["programs"]),
        env=tuple((name, value) for name, value in plain["env"]),
        limits=Limits(**plain["limits"]),
        start=Start(**{**start, "ports": tuple(start["ports"])}) if start else None,
        interpreter=Interpreter(**plain["interpreter"]) if plain.get("interpreter") else None,
    )


def network_of(recipe: Recipe) -> TemplateNetwork:
    """What a recipe says of networks."""
    return TemplateNetwork(allowed=recipe.network, egress=recipe.egress)
