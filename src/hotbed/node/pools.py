"""The pools of this node, and the templates and slots that they share.

Making a pool goes from what costs nothing to what costs most, and gives back what it took when it fails: the request is
checked, slots are taken, the requirements are installed, the derived template is started, the workers are forked.

A derived template that fails to start with its modules imported (one that starts a thread, say) is tried without: its
environments then import for themselves, and their author reads the reason if it fails there too. Templates that no pool
uses are kept warm for the next one, up to `KEPT_WARM`.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hotbed.egress.policy import Policy as EgressPolicy
from hotbed.errors import InvalidRequest, NotFound, PoolClosed, TemplateFailed, Unauthorized
from hotbed.node import plans
from hotbed.node.env_dirs import EnvDirs
from hotbed.node.held import HeldBox
from hotbed.node.leases import Lease, tenant_id
from hotbed.node.nursery import Nursery
from hotbed.node.pool import Pool
from hotbed.node.relay import Relay
from hotbed.node.remembered import Remembered
from hotbed.node.templates import Templates, limits_of
from hotbed.node.tenants import Tenant
from hotbed.pools import bundle, envlib, imports
from hotbed.pools.boltz import Slots
from hotbed.pools.bundle import EnvBundle
from hotbed.pools.requirements import Requirements, top_level_names
from hotbed.runtime.base import Backend, Box, BoxRequest, Template, TemplateSpec
from hotbed.wire.pools import CreatePool, PoolCreated

KEPT_WARM = 8
REMEMBERED = 1024
AHEAD_HINT = (
    "boltz mode and preload=True load env.py once, in the process that workers are forked from: there it may not end "
    "the process, start threads or wait; `hotbed env check DIR` shows what it does by itself"
)

log = logging.getLogger(__name__)

Fork = Callable[[Template, BoxRequest, Lease | None], Awaitable[HeldBox]]
ReadEgress = Callable[[object, str, Lease | None], EgressPolicy | None]  # of what was asked, and the template's name


def no_network(given: object, template: str, lease: Lease | None) -> EgressPolicy | None:
    """What pools get where nobody reads policies."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """What pools need to know of their node."""

    home: Path
    boltz_slots: int = 0
    ttl_s: float = 24 * 3600.0


class Pools:
    """Every live pool."""

    def __init__(
        self, settings: PoolSettings, backend: Backend, templates: Templates, *, nursery: Nursery, fork: Fork
    ) -> None:
        self.env_dirs = EnvDirs(settings.home / "env-dirs")
        self.slots = Slots(settings.boltz_slots)
        self.isolation = ""
        self.lanes_path: str | None = None
        self._settings = settings
        self._backend = backend
        self._templates = templates
        self._nursery = nursery
        self._fork = fork
        self.egress: ReadEgress = no_network
        self.name: Callable[[Box, str], None] = lambda *_: None  # under which a worker's attempts are told
        self._requirements = Requirements(settings.home / "requirements")
        self._live: dict[str, Pool] = {}
        self._ended = Remembered[str](REMEMBERED)  # whose each was
        self._relays: dict[str, Relay] = {}
        self._users: dict[TemplateSpec, int] = {}

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[Pool]:
        return iter(tuple(self._live.values()))

    def get(self, pool_id: str, tenant: Tenant | None = None) -> Pool:
        """A live pool. Raises `PoolClosed` for one that has ended, `NotFound` for one that never was.

        For a tenant, somebody else's never was.
        """
        pool = self._live.get(pool_id)
        if pool is None or (tenant is not None and tenant_id(pool.lease) != tenant.id):
            whose = self._ended.get(pool_id)
            if whose is not None and (tenant is None or whose == tenant.id):
                raise PoolClosed("this pool has ended")
            raise NotFound(f"no pool {pool_id[:64]!r}")
        return pool

    def get_with(self, pool_id: str, token: str) -> Pool:
        """A live pool, for who knows its token."""
        pool = self.get(pool_id)
        if not hmac.compare_digest(pool.token, token):
            raise Unauthorized("that is not this pool's token")
        return pool

    def relay_of(self, pool: Pool) -> Relay:
        """Where the lanes of a pool are that its client has left here."""
        return self._relays.setdefault(pool.id, Relay(pool))

    async def create(self, request: CreatePool, lease: Lease | None) -> PoolCreated:
        """A pool with all its workers, or nothing."""
        begun = time.perf_counter()
        plans.check_isolation(self.isolation, request.min_isolation)
        base = self._templates.spec(request.template)
        tree = self.env_dirs.tree(request.env_digest)
        if request.preload:
            self.slots.check_any()
        slots = self.slots.take(request.slots) if request.mode == "boltz" else None
        try:
            template = await self._template(base, tree, request)
            pool = await self._filled(template, request, lease, slots)
        except BaseException:  # whatever went wrong, the slots go back
            self.slots.give_back(slots or 0)
            raise
        return PoolCreated(
            id=pool.id,
            n=request.n,
            mode=request.mode,
            template=template.spec.name,
            template_digest=template.digest,
            isolation=self.isolation,
            token=pool.token,
            lanes=self.lanes_path,
            slots=slots,
            create_time_ms=round((time.perf_counter() - begun) * 1e3, 3),
        )

    async def _template(self, base: TemplateSpec, tree: Path, request: CreatePool) -> Template:
        packages = await self._requirements.installed(tree)
        also = {name.partition(".")[0] for name in base.preload} | set(top_level_names(packages) if packages else ())
        env = EnvBundle(
            digest=request.env_digest,
            tree=tree,
            envlib=await asyncio.to_thread(envlib.materialise, self._settings.home),
            packages=packages,
            modules=imports.preloadable(tree, also=also),
        )
        ahead = request.preload or request.mode == "boltz"
        derive = partial(bundle.derive, base, ahead=ahead, limits=limits_of(base.limits, request.limits))
        try:
            return await self._backend.template(derive(env))
        except TemplateFailed as error:
            if ahead:
                raise TemplateFailed(f"env.py could not be loaded: {error.message}", hint=AHEAD_HINT) from None
            if not env.modules:
                raise
            log.warning("event=preload_failed template=%s message=%r", base.name, error.message)
            return await self._backend.template(derive(env.without_modules()))

    def _box(self, template: Template, request: CreatePool, lease: Lease | None) -> BoxRequest:
        policy = self.egress(request.egress, request.template, lease)
        if policy is not None and request.mode == "boltz":
            raise InvalidRequest("environments of a boltz pool have no network", hint='use mode="default"')
        forkable = request.mode == "default"
        return BoxRequest(limits=template.spec.limits, forkable=forkable, use_spare=False, egress=policy)

    async def _filled(self, template: Template, request: CreatePool, lease: Lease | None, slots: int | None) -> Pool:
        box = self._box(template, request, lease)
        pool = Pool(
            request=request,
            template=template,
            isolation=self.isolation,
            fork=lambda: self._fork(template, box, lease),
            fork_solo=lambda solo: self._fork(template, replace(box, solo=solo), lease),
            fork_vessel=lambda: self._fork(template, replace(box, vessel=True), lease),
            nursery=self._nursery,
            on_end=self._forget,
            on_worker=lambda worker: self.name(worker.held.box, f"{pool.id}/{worker.index}"),
            lease=lease,
        )
        self._live[pool.id] = pool
        self._users[template.spec] = self._users.get(template.spec, 0) + 1
        try:
            if lease is not None:
                lease.join(pool)
            await pool.fill()
        except BaseException:  # a cancelled creation leaves nothing either
            pool.discard("it could not be filled")
            raise
        pool.slots = slots
        if lease is None:
            asyncio.get_running_loop().call_later(self._settings.ttl_s, pool.discard, "ttl")
        log.info("event=pool_made pool=%s n=%d mode=%s template=%s", pool.id, request.n, request.mode, template.digest)
        return pool

    def _forget(self, pool: Pool) -> None:
        self._live.pop(pool.id, None)
        relay = self._relays.pop(pool.id, None)
        if relay is not None:
            relay.close()
        self._ended.add(pool.id, tenant_id(pool.lease))
        self.slots.give_back(pool.slots or 0)
        spec = pool.template.spec
        self._users[spec] = self._users.pop(spec) - 1  # moved to the end: the order is that of last use
        self._retire_unused()

    def _retire_unused(self) -> None:
        unused = [spec for spec, users in self._users.items() if users == 0]
        for spec in unused[: max(0, len(unused) - KEPT_WARM)]:
            del self._users[spec]
            if (retire := getattr(self._backend, "retire", None)) is not None:
                self._nursery.start(retire(spec), name=f"retire-{spec.name}")
