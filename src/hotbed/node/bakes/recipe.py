"""All that goes into a template, as one value that can be kept, compared and digested."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hotbed.errors import InvalidRequest
from hotbed.runtime.base import Limits
from hotbed.runtime.images import sources
from hotbed.runtime.images.sources import Source
from hotbed.runtime.standing import Interpreter
from hotbed.wire.templates import CreateTemplate, Ready

SETUP_LIMITS = {"memory_mib": 8192, "disk_mib": 4096, "files": 1_000_000, "pids": 1024}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One template. A `stranger` asked, if it was not this machine's own user."""

    name: str
    image: str
    preload: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    limits: Limits = field(default_factory=Limits)
    setup: tuple[str, ...] = ()
    ready: Ready = field(default_factory=Ready)
    warm_cmd: str = ""
    egress: Mapping[str, Any] | None = None
    network: bool = True
    stranger: bool = False

    @property
    def source(self) -> Source:
        """Where the image is."""
        return sources.parse(self.image)

    def variables(self) -> dict[str, str]:
        """What every program of the template gets."""
        return {**dict(self.env), **self.ready.env}

    def setup_recipe(self, done: int) -> str:
        """What went into the layer of the first `done` setup commands, besides the image."""
        return json.dumps([self.setup[:done], sorted(self.variables().items()), self.egress])

    def digest(self) -> str:
        """Of all of it."""
        return "sha256:" + hashlib.sha256(json.dumps(self.to_plain(), sort_keys=True).encode()).hexdigest()

    def to_plain(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Recipe:
        """Back from JSON."""
        return cls(
            name=plain["name"],
            image=plain["image"],
            preload=tuple(plain["preload"]),
            env=tuple((name, value) for name, value in plain["env"]),
            limits=Limits(**plain["limits"]),
            setup=tuple(plain["setup"]),
            ready=Ready(**{**plain["ready"], "ports": tuple(plain["ready"]["ports"])}),
            warm_cmd=plain.get("warm_cmd", ""),
            egress=plain.get("egress"),
            network=plain.get("network", True),
            stranger=plain["stranger"],
        )


def recipe_of(request: CreateTemplate, limits: Limits, *, stranger: bool) -> Recipe:
    """The recipe that a request asks for. Raises `InvalidRequest` before anything is done."""
    ready = request.ready or Ready()
    recipe = Recipe(
        name=request.name,
        image=str(sources.parse(request.image)),
        preload=request.preload,
        env=tuple(sorted(request.env.items())),
        limits=limits,
        setup=request.setup,
        ready=ready,
        warm_cmd=request.warm_cmd.strip(),
        egress=request.egress,
        network=request.network,
        stranger=stranger,
    )
    Interpreter.of(request.warm_cmd)
    if stranger and recipe.source.is_local:
        raise InvalidRequest("image names a file of the server's machine", hint="name a registry's image")
    if (ready.http or ready.ports) and not ready.cmd:
        raise InvalidRequest("ready.http and ready.ports need ready.cmd, which starts what answers there")
    return recipe
