"""The templates of this node: names that callers use, and the specs behind them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from hotbed.errors import AtCapacity, Error, InvalidRequest, NotSupported, UnknownTemplate
from hotbed.node.catalog import Catalog
from hotbed.runtime.base import Backend, Limits, Template, TemplateSpec
from hotbed.runtime.standing import Interpreter
from hotbed.runtime.warmth import Warmth
from hotbed.wire.templates import CreateTemplate, TemplateRow

log = logging.getLogger(__name__)

# What short programs import most: once here, and never again in a fork.
COMMON_MODULES = ("collections", "functools", "itertools", "json", "math", "random", "re", "typing")

HOST_IMAGE = "host"
# A script on stdin would be read by the commands in it. So it comes by another descriptor, and stdin is empty.
BASH = Interpreter(wait="bash /dev/fd/9 9<&0 </dev/null", file="bash")
BAKE_RETRY_S = 2.0

BUILT_IN: tuple[TemplateSpec, ...] = (
    TemplateSpec(name="python", preload=COMMON_MODULES),
    TemplateSpec(name="python-numpy", preload=(*COMMON_MODULES, "numpy")),
    TemplateSpec(name="python-ml", preload=(*COMMON_MODULES, "numpy", "scipy", "pandas", "sklearn")),
    TemplateSpec(name="node", programs=(), interpreter=Interpreter(wait="node -", file="node")),
    TemplateSpec(name="bash", programs=(), interpreter=BASH),
)
DESCRIPTIONS = {
    "python": "this machine's Python, warm, with the modules that short programs import most",
    "python-numpy": "the same with numpy",
    "python-ml": "the same with numpy, scipy, pandas and scikit-learn; installed on first use where it lacks them",
    "node": "JavaScript: this machine's Node.js, or Debian's",
    "bash": "shell scripts, and this machine's programs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateNetwork:
    """What of a template is about networks, and none of its spec's business: nothing in it is made differently."""

    allowed: bool = True
    egress: Mapping[str, Any] | None = None


ANY_NETWORK = TemplateNetwork()


class Templates:
    """Name to spec to warm template."""

    def __init__(
        self,
        backend: Backend,
        *,
        limit: int,
        built_in: Iterable[TemplateSpec] = BUILT_IN,
        catalog: Iterable[str] = (),
    ) -> None:
        self._backend = backend
        self._limit = limit
        self._specs = {spec.name: spec for spec in built_in}
        self.built_in = frozenset(self._specs)
        self._catalog = frozenset(catalog)
        self.catalog = Catalog(backend)
        self._plain: dict[str, TemplateSpec] = {}
        self.widths: dict[str, int] = {}  # how many its users expect to have at once
        self._networks: dict[str, TemplateNetwork] = {}
        self._digests: dict[str, str] = {}
        self._errors: dict[str, str] = {}
        self.bake_phase: Callable[[str], str] = lambda name: ""  # of a name that is none yet

    async def expect(self, name: str, width: int) -> None:
        """Note how many are wanted at once, and have as many kept ready as that is worth; 0 takes it back."""
        self.widths[name] = max(1, width)
        expect = getattr(self._backend, "expect", None)
        if expect is None:
            return
        if width:
            await self.plain(name)
        if name in self._plain:
            expect(self._plain[name], width)

    async def park(self, name: str) -> None:
        """Wait a while for what is kept ready to be there."""
        park = getattr(self._backend, "park", None)
        if park is not None and name in self._plain:
            await park(self._plain[name])

    def warmth(self, name: str) -> Warmth | None:
        """How warm a template is; None of a backend that parks nothing."""
        warmth: Callable[[str], Warmth] | None = getattr(self._backend, "warmth", None)
        return None if warmth is None else warmth(name)

    def declared(self, name: str, width: int) -> int:
        """How many are kept ready, of those that its users expect; 0 while nobody wants any."""
        warmth = self.warmth(name)
        return width if warmth is None else min(width, warmth.kept)

    @property
    def public(self) -> frozenset[str]:
        """What every tenant may use: what is built in, and of what the operator made, what is in the catalog."""
        return self.built_in | (self._catalog & self._specs.keys())

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that a sandbox can be made of."""
        return tuple(self._specs)

    def spec(self, name: str) -> TemplateSpec:
        """What a name stands for. Raises `UnknownTemplate`, and `AtCapacity` while it is being baked."""
        spec = self._specs.get(name)
        if spec is None:
            raise self._absent(name)
        return spec

    def _absent(self, name: str) -> Error:
        phase = self.bake_phase(name)
        if phase == "Failed":
            return UnknownTemplate(f"template {name[:64]!r} could not be baked", hint="its row says why; make it again")
        if phase not in ("", "Live"):  # Live and absent is what is just being removed
            return AtCapacity(
                f"template {name[:64]!r} is still being baked, and is {phase}",
                hint="wait until it is Live",
                retry_after_s=BAKE_RETRY_S,
            )
        known = ", ".join(sorted(self.built_in))  # others' names are not everybody's to know
        return UnknownTemplate(f"no template {name[:64]!r}", hint=f"built in: {known}")

    async def warm(self, name: str) -> Template:
        """The warm template of a name with its guest programs, started on first use and again after it died."""
        return await self._backend.template(self._complete(name))

    def _complete(self, name: str) -> TemplateSpec:
        """The spec, of a built-in with what this machine may lack. Raises `AtCapacity`, `TemplateFailed`."""
        spec = self.spec(name)
        if name in self.built_in:
            spec = self._specs[name] = self.catalog.complete(spec)
        return spec

    async def plain(self, name: str) -> Template:
        """The same without guest programs: for what only runs execs, as each fork pays for all that is imported."""
        spec = self._plain.get(name)
        if spec is None:
            spec = self._plain[name] = replace(self._complete(name), programs=())
        try:
            template = await self._backend.template(spec)
        except Error as error:
            self._errors[name] = error.message
            raise
        if name not in self._digests:
            self._digests[name] = template.digest
            self._errors.pop(name, None)
            log.info("event=template_live template=%s digest=%s", name, template.digest)
        return template

    async def create(self, request: CreateTemplate) -> TemplateRow:
        """Register a template and warm it. The same name twice must mean the same thing."""
        spec = spec_of(request)
        known = self._specs.get(spec.name)
        network = TemplateNetwork(allowed=request.network, egress=request.egress)
        if known is not None and (known != spec or self.network(spec.name) != network):
            raise InvalidRequest(f"template {spec.name!r} exists with other content", hint="choose another name")
        if known is None and self._own() >= self._limit:
            raise AtCapacity(f"this node keeps {self._limit} templates", hint="raise max_templates")
        self._specs[spec.name] = spec
        self._networks[spec.name] = network
        try:
            await self.plain(spec.name)
        except Error:
            if known is None:
                del self._specs[spec.name], self._plain[spec.name]
            raise
        return self.row(spec.name)

    async def remove(self, name: str) -> None:
        """Forget a template that was created here, and end its process. Nothing may live of it any more."""
        spec = self.spec(name)
        if name in self.built_in:
            raise NotSupported(f"template {name!r} is built in", hint="only what was created can be deleted")
        del self._specs[name]
        plain = self._plain.pop(name, None)
        self._networks.pop(name, None)
        self._digests.pop(name, None)
        self._errors.pop(name, None)
        self.widths.pop(name, None)
        if (retire := getattr(self._backend, "retire", None)) is not None:
            for made in filter(None, (spec, plain)):
                await retire(made)

    @staticmethod
    def describe(name: str) -> str:
        """What a template is, in a line."""
        return DESCRIPTIONS.get(name, "made here")

    def specs(self) -> tuple[TemplateSpec, ...]:
        """What every name stands for."""
        return tuple(self._specs.values())

    def check_new(self, name: str, *, besides: int = 0) -> None:
        """Raise `InvalidRequest` or `AtCapacity` if there can be no further template, of this name or at all."""
        if name in self._specs:
            raise InvalidRequest(f"template {name!r} exists with other content", hint="choose another name")
        if self._own() + besides >= self._limit:
            raise AtCapacity(f"this node keeps {self._limit} templates", hint="raise max_templates")

    def _own(self) -> int:
        return len(self._specs) - len(self.built_in)

    def adopt(self, spec: TemplateSpec, network: TemplateNetwork = ANY_NETWORK) -> None:
        """Keep a template that was baked. It is warmed by its first use, if it is not warm already."""
        self._specs[spec.name] = spec
        self._networks[spec.name] = network
        self._plain.pop(spec.name, None)

    def network(self, name: str) -> TemplateNetwork:
        """Whether sandboxes of a template may have a network, and the policy of those that bring none."""
        return self._networks.get(name, ANY_NETWORK)

    def row(self, name: str) -> TemplateRow:
        """A template as listed."""
        spec = self.spec(name)
        error = self._errors.get(name, "")
        live = name in self._digests
        warmth = self.warmth(name) or Warmth()
        return TemplateRow(
            id=name,
            name=name,
            image=spec.image,
            digest=self._digests.get(name, ""),
            phase="Failed" if error else "Live" if live else "Pending",
            preload=spec.preload,
            limits=asdict(spec.limits),
            visibility="public" if name in self.public else "private",
            error=error,
            declared=self.declared(name, self.widths.get(name, 1)),
            warm=warmth.parked,
            frozen=warmth.frozen,
            forks=warmth.forks,
            warm_hits=warmth.hits,
        )

    def rows(self) -> tuple[TemplateRow, ...]:
        """Every template."""
        return tuple(self.row(name) for name in self._specs)


def spec_of(request: CreateTemplate) -> TemplateSpec:
    """The spec that a request describes. Raises `InvalidRequest`."""
    return TemplateSpec(
        name=request.name,
        image=request.image,
        preload=request.preload,
        env=tuple(sorted(request.env.items())),
        limits=limits_of(Limits(), request.limits),
        interpreter=Interpreter.of(request.warm_cmd),
    )


def limits_of(base: Limits, changes: Mapping[str, float] | None) -> Limits:
    """Limits with a request's changes. JSON has one kind of number, so a whole float is taken as the int it is."""
    if not changes:
        return base
    return base.with_changes(
        {name: int(value) if name != "cpus" and float(value).is_integer() else value for name, value in changes.items()}
    )
