"""From a policy and what a connection says of itself to yes or no, with the reason. Pure.

A connection has up to three things: the name its program asked for (by lookup or by proxy request), the address it
dialled, and the name it says itself (the SNI of a TLS hello, the Host of an HTTP request). They must agree, or the
policy would be held against one and the traffic go to another. `settle` says what is to be done: dial this name, or
this address; perhaps only if that name really leads to it, which whoever resolves names then checks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hotbed.egress.addresses import Address, special_kind
from hotbed.egress.entries import Entry
from hotbed.egress.policy import Policy

Speech = Literal["tls", "http", "opaque"]
NOT_RECORDED = "not in the recording"  # how the reason begins of what a sealed recording lacks
_WEB_PORTS = {80: "http", 443: "tls"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether, and why or why not. `entry` is what decided, if a list did."""

    allowed: bool
    reason: str
    entry: Entry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a program wants to go: a name, or an address when it gave none."""

    port: int
    name: str = ""
    address: Address | None = None

    @property
    def shown(self) -> str:
        """In words."""
        return self.name or str(self.address)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What to dial. With a name and an address, only if the one leads to the other."""

    verdict: Verdict
    name: str = ""
    address: Address | None = None


def judge_name(policy: Policy, name: str, port: int | None = None) -> Verdict:
    """Whether a name may be looked up, and with a port, dialled."""
    for entry in policy.deny:
        if not entry.methods and entry.names(name, subdomains=True) and _about(entry, port):
            return Verdict(allowed=False, reason=f"denied by {entry.text}", entry=entry)
    if policy.mode in ("open", "denylist"):
        return Verdict(allowed=True, reason=policy.mode)
    if policy.mode == "allowlist":
        for entry in policy.allow:
            if entry.names(name) and entry.on(port):
                return Verdict(allowed=True, reason=f"allowed by {entry.text}", entry=entry)
    return Verdict(allowed=False, reason="no network" if policy.mode == "none" else "not in the allow list")


def _about(entry: Entry, port: int | None) -> bool:
    """A lookup is refused by an entry for every port only."""
    return entry.on(port) if port is not None else not entry.ports


def judge_method(policy: Policy, verdict: Verdict, name: str, port: int, method: str) -> Verdict:
    """A verdict on a request's host, with its method taken into account."""
    if not verdict.allowed:
        return verdict
    for entry in policy.deny:
        if method in entry.methods and entry.names(name, subdomains=True) and entry.on(port):
            return Verdict(allowed=False, reason=f"{method} denied by {entry.text}", entry=entry)
    named = [entry for entry in policy.allow if entry.names(name) and entry.on(port)]
    fitting = [entry for entry in named if not entry.methods or method in entry.methods]
    if named and not fitting:
        return Verdict(allowed=False, reason=f"{method} is not among the methods of {named[0].text}")
    return replace(verdict, entry=fitting[0]) if fitting else verdict


def judge_address(
    policy: Policy, address: Address, port: int, *, by: Verdict | None = None, own: bool = False
) -> Verdict:
    """Whether an address may be dialled: one that a name led to (`by` its verdict), or one that stands for itself.

    `own` says that it is an address of the node's own machine.
    """
    for entry in policy.deny:
        if entry.holds(address) and entry.on(port):
            return Verdict(allowed=False, reason=f"denied by {entry.text}", entry=entry)
    listed = _listing(policy, address, port, by)
    kind = special_kind(address) or ("node" if own else "")
    if kind and listed is None:
        return Verdict(allowed=False, reason=f"{kind} address")
    if by is not None:
        return by
    if listed is not None:
        return Verdict(allowed=True, reason=f"allowed by {listed.text}", entry=listed)
    if policy.mode == "open" or (policy.mode == "denylist" and not policy.denies_names):
        return Verdict(allowed=True, reason=policy.mode)
    if policy.mode == "denylist":
        return Verdict(allowed=False, reason="an address without a name, where names are denied")
    return Verdict(allowed=False, reason="no network" if policy.mode == "none" else "not in the allow list")


def _listing(policy: Policy, address: Address, port: int, by: Verdict | None) -> Entry | None:
    """The entry that lists the address itself, or that lets the name that led here lead here."""
    if by is not None and by.entry is not None:
        if any(address.version == network.version and address in network for network in by.entry.addresses):
            return by.entry
    return next((entry for entry in policy.allow if entry.holds(address) and entry.on(port)), None)


def settle(policy: Policy, target: Target, speech: Speech, said: str) -> Way:
    """What to do with a connection to `target` that speaks so and says this name (empty: none)."""
    expected = _WEB_PORTS.get(target.port)
    if expected and speech == "opaque" and policy.mode != "open":
        return _refused(f"what is sent to port {target.port} is no {expected.upper()}")
    if target.name:
        if said and said != target.name:
            return _refused(f"it asked for {target.name} and says {said[:100]}")
        return _read(
            policy, Way(verdict=judge_name(policy, target.name, target.port), name=target.name), target, speech
        )
    assert target.address is not None
    if not said:
        return Way(verdict=judge_address(policy, target.address, target.port), address=target.address)
    return _read(policy, _literal(policy, target, said), target, speech)


def _read(policy: Policy, way: Way, target: Target, speech: Speech) -> Way:
    """Nobody sees a method in what is not plain HTTP, so what only some methods are allowed for is refused there."""
    if speech == "http" or not way.verdict.allowed or not way.name:
        return way
    return replace(way, verdict=judge_unread(policy, way.verdict, way.name, target.port))


def judge_unread(policy: Policy, verdict: Verdict, name: str, port: int) -> Verdict:
    """A verdict on a host, where its requests cannot be read."""
    for entry in policy.deny:
        if entry.methods and entry.names(name, subdomains=True) and entry.on(port):
            return Verdict(
                allowed=False, reason=f"the methods that {entry.text} denies cannot be seen here", entry=entry
            )
    named = [entry for entry in policy.allow if entry.names(name) and entry.on(port)]
    if named and all(entry.methods for entry in named):
        return Verdict(allowed=False, reason=f"the methods of {named[0].text} cannot be seen here")
    return verdict


def _literal(policy: Policy, target: Target, said: str) -> Way:
    """An address was dialled and a name said: it must be allowed and lead there, unless the address itself is."""
    assert target.address is not None
    by_name = judge_name(policy, said, target.port)
    by_address = judge_address(policy, target.address, target.port)
    if by_address.allowed and (by_name.allowed or policy.mode == "allowlist") and not _denied(by_name):
        return Way(verdict=by_address, address=target.address)
    return Way(verdict=by_name, name=said, address=target.address)


def _denied(verdict: Verdict) -> bool:
    return not verdict.allowed and verdict.entry is not None


def _refused(reason: str) -> Way:
    return Way(verdict=Verdict(allowed=False, reason=reason))


def is_leak(watched: tuple[Entry, ...], verdict: Verdict, name: str, policy: Policy) -> bool:
    """Whether a refused attempt went for what is watched, or for what the policy denies by name."""
    if verdict.allowed:
        return False
    if verdict.entry is not None and verdict.entry in policy.deny:
        return True
    return bool(name) and any(entry.names(name, subdomains=True) for entry in watched)
