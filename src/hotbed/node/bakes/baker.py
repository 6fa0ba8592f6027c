"""One bake, step by step. Each step's result is kept by content, so a bake that begins again goes through what is done.

1. *Converting*: the image's layers are unpacked, its Python is looked for, setup runs in a sandbox and its changes are
   kept as a layer.
2. *Distributing*: the template is warmed, and in a fork of it the ready conditions have to come true.

Nothing that ran here is part of a sandbox later, but for its files. What `ready` leaves running is started again in
each sandbox: this backend forks interpreters, not whatever else runs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from hotbed.egress.policy import Policy
from hotbed.errors import BakeFailed, NotSupported, TemplateFailed
from hotbed.node.bakes import interpreter
from hotbed.node.bakes.recipe import SETUP_LIMITS, Recipe
from hotbed.runtime import starting
from hotbed.runtime.base import HOST_IMAGE, Backend, Box, BoxRequest, ExecRequest, Limits, Template, TemplateSpec
from hotbed.runtime.images.building import Builder
from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.standing import Interpreter, Start

SETUP_TIMEOUT_S = 3600.0
GetPolicy = Callable[[Recipe], Policy | None]
_TAIL = 400
_EMPTY_S = 60.0
_BLOCK = 1 << 20
_MOUNTED = ("dev", "proc", "sys")
_HOST_MOUNTED = (*_MOUNTED, "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "opt")
_HOST_RECORD = ImageRecord(digest="sha256:" + "0" * 64, source=HOST_IMAGE, host=True)


class Teller(Protocol):
    """Who wants to know how far a bake is."""

    def phase(self, name: str) -> None:
        """A phase begins."""
        ...

    def progress(self, about: Mapping[str, Any]) -> None:
        """How far the present step is."""
        ...

    def log(self, text: str) -> None:
        """What a command printed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Baked:
    """A template that can be forked. `image` is its digest; empty for the host's own."""

    spec: TemplateSpec
    live_state: str = "none"


class Baker:
    """Bakes on one backend. `parent` gives the spec of another template, `policy` what setup may reach."""

    def __init__(
        self, backend: Backend, *, parent: Callable[[str], TemplateSpec], policy: GetPolicy = lambda recipe: None
    ) -> None:
        self._backend = backend
        self._parent = parent
        self._policy = policy
        self.at_work = 0  # sandboxes that are used for bakes now

    @property
    def builder(self) -> Builder:
        """What builds images. Raises `NotSupported` where nothing does."""
        found = getattr(self._backend, "builder", None)
        if found is None:
            raise NotSupported("this node's backend has no images", hint="image 'host' without setup is what it has")
        builder: Builder = found
        return builder

    async def bake(self, recipe: Recipe, teller: Teller) -> Baked:
        """Make it. Raises what a user can mend as `BakeFailed` or `BadImage`."""
        teller.phase("Converting")
        base, image = await self._image(recipe, teller)
        if recipe.setup:
            image = await self._set_up(recipe, base, image, teller)
        spec = TemplateSpec(
            name=recipe.name,
            image=image,
            preload=(*base.preload, *(name for name in recipe.preload if name not in base.preload)),
            env=tuple(sorted({**dict(base.env), **recipe.variables()}.items())),
            limits=recipe.limits,
            start=base.start,
            interpreter=Interpreter.of(recipe.warm_cmd) or base.interpreter,
        )
        teller.phase("Distributing")
        return await self._warm(recipe, spec, teller)

    async def _image(self, recipe: Recipe, teller: Teller) -> tuple[TemplateSpec, str]:
        """The parent's spec, or an empty one, and the image it all starts from."""
        source = recipe.source
        if source.kind == "template":
            parent = self._parent(source.place)
            return parent, parent.image
        base = TemplateSpec(name="base")
        if source.kind == "host":
            return base, HOST_IMAGE
        record = await self.builder.build(str(source), teller.progress, stranger=recipe.stranger)
        for note in record.notes:
            teller.log(f"# {note}\n")
        return base, (await self._with_python(record, teller)).digest

    async def _with_python(self, record: ImageRecord, teller: Teller) -> ImageRecord:
        """The record once its Python has been looked for."""
        if record.python is not None or record.python_note:
            return record
        teller.progress({"step": "looking for Python"})
        try:
            python, note = await interpreter.find(self._backend, record.digest)
        finally:
            await self._retire(TemplateSpec(name="image-probe", image=record.digest, programs=(), parks=False))
        record = replace(record, python=python, python_note=note)
        await asyncio.to_thread(self.builder.store.put, record)
        return record

    async def _retire(self, spec: TemplateSpec) -> None:
        if (retire := getattr(self._backend, "retire", None)) is not None:
            await retire(spec)

    async def _set_up(self, recipe: Recipe, base: TemplateSpec, image: str, teller: Teller) -> str:
        """The image with a layer of what the setup commands changed."""
        store = self.builder.store
        parent = _HOST_RECORD if image == HOST_IMAGE else await asyncio.to_thread(store.get, image)
        env = {**dict(base.env), **recipe.variables()}
        limits = recipe.limits if recipe.stranger else setup_limits(recipe.limits)  # a tenant's are its tier's
        variables = tuple(sorted(env.items()))
        spec = TemplateSpec(name="setup", image=image, env=variables, programs=(), limits=limits, parks=False)
        template = await self._backend.template(spec)
        try:
            async with self._box(template, BoxRequest(forkable=True, egress=self._policy(recipe))) as box:
                for number, command in enumerate(recipe.setup, 1):
                    teller.progress({"step": "setup", "command": number, "commands": len(recipe.setup)})
                    await _run(box, command, teller)
                if await starting.leaves_running(box):
                    teller.log("# setup left something running, which ends here: only its files are kept\n")
                record = await self._keep(box, parent, recipe, base, teller)
        finally:
            await self._retire(spec)
        return record.digest

    @asynccontextmanager
    async def _box(self, template: Template, request: BoxRequest) -> AsyncIterator[Box]:
        """A sandbox for a bake, killed afterwards, and known meanwhile to whoever counts them."""
        self.at_work += 1
        try:
            box = await template.fork(replace(request, use_spare=False))
            try:
                yield box
            finally:
                await box.kill()
        finally:
            self.at_work -= 1

    async def _keep(
        self, box: Box, parent: ImageRecord, recipe: Recipe, base: TemplateSpec, teller: Teller
    ) -> ImageRecord:
        teller.progress({"step": "keeping"})
        layer = os.open(self.builder.store.home, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            most = self.builder.most_bytes
            await save(box, layer, most)
            mounted = _HOST_MOUNTED if parent.host else _MOUNTED
            recipe_text = f"{sorted(base.env)}{recipe.setup_recipe(len(recipe.setup))}"
            source = os.open(f"/proc/self/fd/{layer}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return await self.builder.extend(
                    parent, recipe_text, source, mounted=mounted, on_progress=teller.progress
                )
            finally:
                os.close(source)
        finally:
            os.close(layer)

    async def _warm(self, recipe: Recipe, spec: TemplateSpec, teller: Teller) -> Baked:
        """The template, warm and found ready."""
        ready = recipe.ready
        try:
            if ready.cmd:
                spec = replace(spec, start=None)  # what the parent starts is replaced, and must not be tried twice
            template = await self._backend.template(replace(spec, programs=()))
        except TemplateFailed as error:
            raise BakeFailed(f"the template does not start: {error.message}", hint=error.hint) from None
        if recipe.warm_cmd:
            async with self._box(template, BoxRequest()) as box:
                await _try(box)
        if not ready.cmd:
            return Baked(spec=spec, live_state="restarted" if spec.start else "none")
        start = Start(cmd=ready.cmd, http=ready.http, ports=ready.ports, timeout_s=ready.timeout_s)
        teller.progress({"step": "ready"})
        async with self._box(template, BoxRequest(egress=self._policy(recipe))) as box:
            try:
                teller.log(await starting.come_up(box, start))
                runs = await starting.leaves_running(box)
            except starting.NotStarted as error:
                raise BakeFailed(f"ready: {error}") from None
        if not runs:
            return Baked(spec=spec)
        await self._retire(replace(spec, programs=()))
        spec = replace(spec, start=start)
        await self._backend.template(replace(spec, programs=()))
        return Baked(spec=spec, live_state="restarted")


async def _try(box: Box) -> None:
    """Run an empty program. Raises `BakeFailed` if there is nothing that could run one."""
    outcome = await box.exec(ExecRequest(kind="code", timeout_s=_EMPTY_S, output_bytes=1 << 16))
    if outcome.status != "ok":
        printed = (outcome.stdout + outcome.stderr)[-_TAIL:].decode(errors="replace").strip()
        code = outcome.exit_code if outcome.exit_code is not None else outcome.signal
        raise BakeFailed(
            f"warm_cmd ended with {outcome.status} {code} over an empty program: {printed}",
            hint="it has to read a program on stdin to its end, then run it",
        )


async def _run(box: Box, command: str, teller: Teller) -> None:
    """One setup command. Raises `BakeFailed`."""
    teller.log(f"$ {command}\n")

    async def hand_on(_: int, data: bytes) -> None:
        teller.log(data.decode(errors="replace"))

    request = ExecRequest(kind="command", program=command.encode(), timeout_s=SETUP_TIMEOUT_S, output_bytes=1 << 20)
    outcome = await box.exec(request, hand_on)
    if outcome.status != "ok":
        printed = (outcome.stdout + outcome.stderr)[-_TAIL:].decode(errors="replace").strip()
        code = outcome.exit_code if outcome.exit_code is not None else outcome.signal
        raise BakeFailed(f"setup command {command[:120]!r} ended with {outcome.status} {code}: {printed}")


async def save(box: Box, layer: int, most: int) -> None:
    """Have the sandbox's changes written to a file, through a pipe that takes no more than `most` bytes."""
    pass_layer = getattr(box, "pass_layer", None)
    if pass_layer is None:
        raise NotSupported("this node's backend cannot keep what setup changes")
    source, sink = os.pipe2(os.O_CLOEXEC)
    keeping = asyncio.get_running_loop().run_in_executor(None, copy, source, layer, most)
    try:
        await pass_layer("save_layer", sink)
    finally:
        os.close(sink)
        whole = await keeping
    if not whole:
        raise BakeFailed(f"what setup changed is more than {most >> 20} MiB")


def copy(source: int, target: int, most: int) -> bool:
    """Move a pipe's content to a file; whether it was no more than `most` bytes. Takes ownership of `source`."""
    try:
        while data := os.read(source, _BLOCK):
            most -= len(data)
            if most < 0:
                return False
            while data:
                data = data[os.write(target, data) :]
        return True
    finally:
        os.close(source)


def setup_limits(own: Limits) -> Limits:
    """Setup may use more than a sandbox: it unpacks, compiles, installs."""
    return replace(own, **{name: max(getattr(own, name), most) for name, most in SETUP_LIMITS.items()})
