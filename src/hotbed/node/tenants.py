"""Tenants: who makes things here, and how much each may have at once.

A tenant's things live under its leases: the ones its clients hold, and one that is never held and never ends, for what
a client makes without one. So whose a sandbox, a pool or a snapshot is, is the tenant of its lease. Who uses the node
as a whole, its own user through the Unix socket, is no tenant and sees everything.

Every tenant has one tier. What it may hold at once is kept by admission (see `scheduler`), how often it may ask by a
token bucket here; both refuse before anything is done.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from hotbed.errors import Forbidden, InvalidRequest, RateLimited, TierLimit
from hotbed.node.leases import Lease
from hotbed.node.scheduler import Share
from hotbed.wire.checks import require

SCOPES = ("admin", "run", "grade", "read", "metrics")
TEMPLATE_MARK = "--"  # between a tenant and the name of its template
_LEAST = {"templates": 0, "requests_per_s": 0, "waiting": 0, "cpus": 0.1, "sandboxes": 2}
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def require_name(what: str, name: str) -> None:
    """Refuse a name that cannot be told apart inside an id, a key or a log line."""
    good = isinstance(name, str) and len(name) <= 40 and _NAME.fullmatch(name) is not None
    require(
        good, f"{what} {str(name)[:60]!r} is not a name", "lower-case letters, digits and single hyphens, 40 at most"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """What each tenant of a tier may have: at once, per sandbox, and per second. 0 requests per second is no limit."""

    name: str
    sandboxes: int = 64
    waiting: int = 1000
    fork: int = 32
    templates: int = 8
    cpus: float = 4.0
    memory_mib: int = 4096
    requests_per_s: float = 0.0
    burst: int = 100
    ingress: bool = True
    network: bool = True

    def __post_init__(self) -> None:
        require_name("tier", self.name)
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            if isinstance(item.default, bool):
                require(isinstance(value, bool), f"tiers.{self.name}.{item.name} must be true or false")
                continue
            good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            least = _LEAST.get(item.name, 1)
            require(good and value >= least, f"tiers.{self.name}.{item.name} must be at least {least}, not {value!r}")
            require(
                item.name in ("cpus", "requests_per_s") or isinstance(value, int),
                f"tiers.{self.name}.{item.name} must be a whole number, not {value!r}",
            )


DEFAULT_TIERS: Mapping[str, Tier] = {
    "demo": Tier(
        name="demo",
        sandboxes=8,
        fork=4,
        templates=0,
        cpus=1.0,
        memory_mib=1024,
        requests_per_s=50.0,
        ingress=False,
        network=False,
    ),
    "pro": Tier(name="pro", sandboxes=256, fork=32),
    "ent": Tier(name="ent", sandboxes=4096, waiting=10_000, fork=64, templates=32, cpus=16.0, memory_mib=32_768),
}


def tiers_from(table: Mapping[str, Any]) -> dict[str, Tier]:
    """The tiers of a settings file, over the built-in ones. Raises `InvalidRequest`."""
    known = {item.name for item in fields(Tier)} - {"name"}
    tiers = dict(DEFAULT_TIERS)
    for name, values in table.items():
        require(isinstance(values, Mapping), f"tiers.{name} must be a table")
        unknown = sorted(set(values) - known)
        require(not unknown, f"tiers.{name} has no {', '.join(unknown)}", f"it has {', '.join(sorted(known))}")
        base = tiers.get(name)
        inherited = {item: getattr(base, item) for item in known} if base is not None else {}
        tiers[name] = Tier(**{**inherited, **values, "name": name})
    return tiers


class Tenant:
    """One tenant: its tier (of those that there are), its lasting lease, and its tokens for requests."""

    __slots__ = ("id", "lease", "share", "tier", "_clock", "_tiers", "_tokens", "_told_s")

    def __init__(
        self,
        tenant_id: str,
        tier: Tier,
        *,
        tiers: Mapping[str, Tier] = DEFAULT_TIERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = tenant_id
        self._tiers = tiers
        self.take_tier(tier)
        self.lease = Lease(tenant=self, held=False)
        self._clock = clock
        self._tokens = float(tier.burst)
        self._told_s = clock()

    def take_tier(self, tier: Tier) -> None:
        """Be of this tier from now on."""
        self.tier = tier
        name = f"tenant {self.id} may have {tier.sandboxes} sandboxes in tier {tier.name}"
        self.share = Share(name=name, limit=tier.sandboxes, waiting=tier.waiting)

    def refusal(self, right: str, lack: str, *, instead: str = "") -> TierLimit:
        """What to raise for a right that this tier lacks and whatever others have: a field of `Tier`."""
        having = [tier.name for tier in self._tiers.values() if getattr(tier, right)]
        listed = " and ".join([", ".join(having[:-1]), having[-1]] if len(having) > 1 else having)
        others = f"{listed} {'does' if len(having) == 1 else 'do'}" if having else "no other does"
        another = "ask the operator of this server for " + ("another tier" if having else "one that does")
        return TierLimit(
            f"tier {self.tier.name} {lack}; {others}", hint=f"{instead}, or {another}" if instead else another
        )

    def spend(self) -> None:
        """Take the token of one request. Raises `RateLimited` with the time until there is one."""
        rate = self.tier.requests_per_s
        if not rate:
            return
        now = self._clock()
        self._tokens = min(float(self.tier.burst), self._tokens + (now - self._told_s) * rate)
        self._told_s = now
        if self._tokens < 1:
            raise RateLimited(
                f"tenant {self.id} may ask {rate:g} times a second in tier {self.tier.name}",
                hint="wait for the time named, or ask the operator of this server for another tier",
                retry_after_s=(1 - self._tokens) / rate,
            )
        self._tokens -= 1

    def template_name(self, name: str, built_in: frozenset[str]) -> str:
        """What the node calls a template that this tenant names. Its own names are free of everybody else's."""
        own = f"{self.id}{TEMPLATE_MARK}"
        return name if name in built_in or name.startswith(own) else f"{own}{name}"

    def owns_template(self, full_name: str) -> bool:
        """Whether a template is one that this tenant made."""
        return full_name.startswith(f"{self.id}{TEMPLATE_MARK}")

    def capped(self, limits: Mapping[str, float] | None, default: Mapping[str, float]) -> Mapping[str, float] | None:
        """The limits of a sandbox under the tier. What was asked for beyond it is refused; a default is lowered."""
        changed = dict(limits or {})
        for name in ("cpus", "memory_mib"):
            most = getattr(self.tier, name)
            if changed.get(name, 0) > most:
                raise TierLimit(
                    f"limits.{name} is {changed[name]:g}, and tier {self.tier.name} allows {most:g} for a sandbox",
                    hint="ask for less, or ask the operator of this server for another tier",
                )
            if name not in changed and default[name] > most:
                changed[name] = most
        memory = changed.get("memory_mib", default["memory_mib"])
        if "disk_mib" not in changed and default["disk_mib"] >= memory:
            changed["disk_mib"] = max(1, memory // 2)  # the disk lives in memory
        return changed or None


class Tenants:
    """The tenants seen since the node started."""

    def __init__(self, tiers: Mapping[str, Tier] = DEFAULT_TIERS) -> None:
        self.tiers = tiers
        self._known: dict[str, Tenant] = {}

    def __iter__(self) -> Iterator[Tenant]:
        return iter(tuple(self._known.values()))

    def get(self, tenant_id: str, tier_name: str) -> Tenant:
        """A tenant. A change of its tier takes effect at once. Raises `Forbidden` for a tier that is gone."""
        known = self._known.get(tenant_id)
        if known is not None and known.tier.name == tier_name:
            return known
        tier = self.tiers.get(tier_name)
        if tier is None:
            raise Forbidden(
                f"tier {tier_name!r} of this key is not one of this server's",
                hint="start it with the settings file that has it (--settings), or make a new key",
            )
        if known is None:
            known = self._known[tenant_id] = Tenant(tenant_id, tier, tiers=self.tiers)
        known.take_tier(tier)
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who made a request, by its key."""

    tenant: Tenant
    scopes: frozenset[str]
    key_id: str

    @property
    def sight(self) -> Tenant | None:
        """Whose things it may see and end; everybody's (None) with the scope `admin`. What it makes is its tenant's."""
        return None if "admin" in self.scopes else self.tenant

    def check_scope(self, *wanted: str) -> None:
        """Raise `Forbidden` unless the key has one of these scopes. `admin` has them all."""
        if "admin" not in self.scopes and not self.scopes.intersection(wanted):
            raise Forbidden(
                f"this key may not do that: it needs the scope {' or '.join(wanted)}",
                hint=f"it has {', '.join(sorted(self.scopes))}; `hotbed keys create --scopes` makes one",
            )


def check_scopes(scopes: tuple[str, ...]) -> None:
    """Refuse scopes that do not exist."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise InvalidRequest(f"no scope {', '.join(unknown) or 'given'}", hint=f"scopes: {', '.join(SCOPES)}")
