"""What of a node is about networks: which policy a sandbox gets, and keeping what its sandboxes tried.

A policy may list addresses that are otherwise refused (this machine, private networks): for the node's own user that is
a choice like any other, for a tenant it would be a way into somebody else's network. So what tenants may list is a
setting of the node, and empty unless its operator says otherwise.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from hotbed.egress import presets
from hotbed.egress.addresses import Network, covers, reaches_special
from hotbed.egress.policy import Policy, parse
from hotbed.errors import InvalidRequest, NotSupported
from hotbed.node.authority import Authority
from hotbed.node.leases import Lease, tenant_id
from hotbed.node.ledger.entry import Entry
from hotbed.node.recordings import Recorded, Recordings
from hotbed.node.secrets import Secrets
from hotbed.node.templates import Templates
from hotbed.node.tenants import Tenant
from hotbed.runtime.base import Box, BoxRequest, Template
from hotbed.runtime.egress.outlet import Outlet
from hotbed.runtime.egress.outlets import Outlets


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressSettings:
    """`tenants` are the networks that a tenant may list although they are not of the public Internet."""

    enabled: bool = True
    tenants: tuple[str, ...] = ()
    presets: Path | None = None
    secrets: Path | None = None
    recordings: Path | None = None

    def __post_init__(self) -> None:
        for text in self.tenants:
            try:
                ip_network(text)
            except ValueError as error:
                raise InvalidRequest(f"egress_tenants: {error}", hint="networks such as 10.0.0.0/8") from None


@dataclass(slots=True, kw_only=True)
class Subject:
    """Whose attempts they are."""

    tenant: str
    template: str
    sandbox_id: str = ""
    rollout_id: str = ""


class Egress:
    """One node's."""

    def __init__(
        self, settings: EgressSettings, backend: object, templates: Templates, note: Callable[[Entry], None]
    ) -> None:
        self._settings = settings
        self._templates = templates
        self._note = note
        self._subjects: dict[int, Subject] = {}
        self.presets = presets.load(settings.presets)
        self._listable: tuple[Network, ...] = tuple(ip_network(text) for text in settings.tenants)
        outlets = getattr(backend, "outlets", None)
        self._outlets: Outlets | None = outlets if isinstance(outlets, Outlets) else None
        self._secrets = Secrets(settings.secrets)
        self._authority: Authority | None = None
        self.recordings = Recordings(settings.recordings or Path("/nonexistent"))
        if self._outlets is not None:
            orders = self._outlets.orders
            orders.secrets = lambda policy: [item.to_wire() for item in self._secrets.named(policy.secret_refs)]
            orders.shelf.read, orders.shelf.keep = self.recordings.read, self.recordings.keep
            self._outlets.bundle = lambda: self.authority().bundle_pem()
            self._outlets.sign = lambda name: self.authority().chain_pem(name)
            self._outlets.watched = [entry.to_wire() for entry in self.presets[presets.LEAKAGE].deny]
            self._outlets.on_rows = self._on_rows

    def policy(
        self,
        given: object,
        template: str,
        lease: Lease | None,
        *,
        of: Recorded | None = None,
        sealed: bool = False,
    ) -> Policy | None:
        """The policy of a new sandbox; None for no network. Raises `InvalidRequest` for one that cannot be had.

        What it hears can be recorded as `of` somebody, or, `sealed`, is answered from that recording.
        """
        default = self._templates.network(template)
        if given is None and default.egress is None:
            return None
        policy = self.read(default.egress if given is None else given, lease)
        if not default.allowed:
            raise InvalidRequest(
                f"template {template!r} was made without a network, so no egress policy can be applied",
                hint="leave egress out, or make the template with network",
            )
        if policy.mode == "none":
            return None
        self._check_possible()
        if not policy.record:
            return policy
        if of is None:
            raise NotSupported("egress: only rollouts and sandboxes are recorded", hint="leave record out")
        return replace(policy, recording=self.recordings.name(of), sealed=sealed)

    def read(self, given: object, lease: Lease | None) -> Policy:
        """A policy with its presets looked up, that whoever asks may use. Raises `TierLimit` for who may use none."""
        policy = parse(given, self.presets)
        if policy.mode != "none" and lease is not None and lease.tenant is not None:
            _check_tier(lease.tenant)
        found = self._secrets.named(policy.secret_refs, tenant_id(lease))
        if found and policy.mode == "allowlist" and not policy.allow:
            hosts = [host for secret in found for host in secret.hosts]
            policy = replace(policy, allow=tuple(replace(host, ports=host.ports or (443,)) for host in hosts))
        if policy.reads_any:
            self.authority()
        if tenant_id(lease):
            for entry in policy.allow:
                self._check_listable(entry.network, entry.text)
                for network in entry.addresses:
                    self._check_listable(network, f"{network} of {entry.text}")
        return policy

    def authority(self) -> Authority:
        """What sandboxes trust whose TLS is read. Made when it is first needed. Raises `NotSupported`."""
        if self._authority is None:
            self._authority = Authority()
        return self._authority

    def _check_listable(self, network: Network | None, text: str) -> None:
        if network is None or not reaches_special(network):
            return
        if not any(covers(known, network) for known in self._listable):
            raise InvalidRequest(
                f"egress: {text!r} is not of the public Internet",
                hint="the operator of this node says which such networks may be listed (egress_tenants)",
            )

    def _check_possible(self) -> None:
        if not self._settings.enabled:
            raise NotSupported("this node gives no sandbox a network", hint="it was started with --egress off")
        if self._outlets is None:
            raise NotSupported("this node's isolation has no network to give")

    def follow(self, box: Box, request: BoxRequest, template: Template, lease: Lease | None) -> Box:
        """Know whose a new sandbox is, if it has a network."""
        if request.egress is not None:
            self._subjects[box.id] = Subject(tenant=tenant_id(lease), template=template.spec.name)
        return box

    def name(self, box: Box, sandbox_id: str = "", *, rollout_id: str = "") -> None:
        """What a sandbox tries is told under this name."""
        subject = self._subjects.get(box.id)
        if subject is not None:
            subject.sandbox_id, subject.rollout_id = sandbox_id, rollout_id

    def inherited(self, box: Box) -> Policy | None:
        """The policy of what is made of a sandbox: the one it has at that moment."""
        outlet = outlet_of(box)
        return outlet.policy if outlet is not None and outlet.policy.mode != "none" else None

    async def tally(self, box: Box) -> Mapping[str, Any] | None:
        """What a sandbox tried since last asked, for its result; None when it has no network."""
        outlet = outlet_of(box)
        if outlet is None:
            return None
        return {"mode": outlet.policy.mode, "presets": list(outlet.policy.presets), **await outlet.tally()}

    async def change(self, box: Box, given: object, template: str, lease: Lease | None, *, sandbox_id: str) -> Policy:
        """Hold a living sandbox to another policy; the one it has then."""
        outlet = outlet_of(box)
        if outlet is None:
            policy = self.policy(given, template, lease)
            if policy is None:
                return parse("none")
            home = getattr(box, "home", None)
            if self._outlets is None or home is None:
                raise NotSupported("this sandbox cannot be given a network while it lives")
            self._subjects[box.id] = Subject(tenant=tenant_id(lease), template=template, sandbox_id=sandbox_id)
            await self._outlets.equip(box, policy)  # type: ignore[arg-type]  # has a home
            box.outlet = await self._outlets.open(box.id, home, policy)  # type: ignore[attr-defined]  # has a home
            return policy
        policy = self._continued(outlet.policy, self.read(given, lease))
        if self._outlets is not None:
            await self._outlets.equip(box, policy)  # type: ignore[arg-type]  # has an outlet
        await outlet.change(policy)
        return policy

    def _continued(self, before: Policy, policy: Policy) -> Policy:
        """The next policy of a sandbox: one that is recorded stays so, and no other begins to be."""
        if policy.record and not before.recording:
            raise NotSupported("egress: a sandbox is recorded from its beginning or not", hint="make it with record")
        record = bool(before.recording) and policy.mode != "none"
        return replace(policy, record=record, recording=before.recording, sealed=before.sealed)

    def _on_rows(self, box_id: int, rows: Sequence[Mapping[str, Any]], over: bool) -> None:
        subject = self._subjects.get(box_id)
        if subject is not None and rows:
            self._note(entry_of(subject, rows))
        if over:
            self._subjects.pop(box_id, None)


def _check_tier(tenant: Tenant) -> None:
    if not tenant.tier.network:
        raise tenant.refusal("network", "gives no sandbox a network", instead="leave egress out")


def outlet_of(box: Box) -> Outlet | None:
    """A sandbox's way out, if it has one."""
    found = getattr(box, "outlet", None)
    return found if isinstance(found, Outlet) else None


def entry_of(subject: Subject, rows: Sequence[Mapping[str, Any]]) -> Entry:
    """Decisions as a line for the ledger, which keeps them in a table of their own."""
    return Entry(
        id=f"egress_{secrets.token_hex(8)}",
        kind="egress",
        at=time.time(),
        template=subject.template,
        template_digest="",
        request=b"",
        sandbox_id=subject.sandbox_id,
        tenant=subject.tenant,
        details={"rollout_id": subject.rollout_id, "rows": [dict(row) for row in rows]},
    )
