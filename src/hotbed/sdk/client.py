"""A client: a held lease on one node, and the questions that are about the node as a whole.

`Client` and `AsyncClient` are two faces of one `Link`; either can be given wherever a client is asked for, by the face
that does the asking. Everything made through a client ends with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hotbed.sdk import calls, egress_calls, job_calls, snapshot_calls, template_calls
from hotbed.sdk.programs import EgressPolicy
from hotbed.sdk.transport import Link
from hotbed.wire.egress import EgressList
from hotbed.wire.health import Health
from hotbed.wire.ledger import GroupReplay, ReplayReport, RolloutDetail, RolloutList
from hotbed.wire.sandboxes import SandboxRow, Selector
from hotbed.wire.snapshots import SnapshotRow
from hotbed.wire.templates import ImageRow, TemplateRow

if TYPE_CHECKING:
    from hotbed.sdk.async_sandbox import AsyncSandbox
    from hotbed.sdk.groups import AsyncSandboxGroup, SandboxGroup
    from hotbed.sdk.sandbox import Sandbox

REPLAY_TIMEOUT_S = 3600.0


class Client:
    """A connection to a node, for any number of threads. Closing it ends every sandbox made through it."""

    def __init__(self, link: Link) -> None:
        self.link = link

    @property
    def url(self) -> str:
        """The node's address."""
        return str(self.link.address)

    def health(self) -> Health:
        """Whether the node is well, and how busy."""
        return self.link.send(calls.health())

    def capabilities(self) -> Mapping[str, Any]:
        """What the node's host allows, and which isolation results."""
        return self.link.send(calls.capabilities())

    def stats(self) -> Mapping[str, Any]:
        """The node's counters."""
        return self.link.send(calls.stats())

    def templates(self) -> tuple[TemplateRow, ...]:
        """Every template that can be forked."""
        return self.link.send(template_calls.listing())

    def create_template(
        self,
        name: str,
        *,
        image: str = "host",
        preload: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        limits: Mapping[str, float] | None = None,
        network: bool = True,
        egress: EgressPolicy | None = None,
    ) -> TemplateRow:
        """Name a template of this host's system: modules its interpreter has imported, variables, limits, network.

        One of another image is baked, and not ready when this returns: see `Template.bake`.
        """
        request = template_calls.described(name, image, preload, env, limits, egress, network=network)
        return self.link.send(template_calls.create(request))

    def template(self, name: str) -> TemplateRow:
        """One template, and how far it is."""
        return self.link.send(template_calls.get(name))

    def expect(self, template: str, width: int) -> TemplateRow:
        """So many sandboxes of a template will be wanted at once: have as many parked as its node can."""
        return self.link.send(template_calls.expect(template, width))

    def release(self, template: str) -> TemplateRow:
        """None of a template are wanted any more. What lives is left alone."""
        return self.link.send(template_calls.expect(template, 0))

    def delete_template(self, name: str) -> None:
        """Forget a template of your own, or give up its bake. Refused while sandboxes of it live."""
        self.link.send(template_calls.delete(name))

    def images(self) -> tuple[ImageRow, ...]:
        """What a template can be made from: the catalog, and the images that are unpacked on this node."""
        return self.link.send(template_calls.images())

    def sandboxes(self) -> tuple[SandboxRow, ...]:
        """Every live sandbox of this user."""
        return self.link.send(calls.list_sandboxes())

    def delete_sandboxes(
        self,
        *ids: str,
        labels: Mapping[str, str] | None = None,
        group: str | None = None,
        lease_id: str | None = None,
    ) -> tuple[str, ...]:
        """End every sandbox of which all that is given holds, at once; which they were."""
        selector = Selector(ids=ids, labels=dict(labels or {}), group=group, lease_id=lease_id)
        return self.link.send(job_calls.delete_sandboxes(selector))

    def group(self, name: str) -> SandboxGroup:
        """A handle on all sandboxes of one group, those that will be made included."""
        from hotbed.sdk.groups import SandboxGroup  # which imports this

        return SandboxGroup(self, name)

    def session(self, template: str, *, label: str | None = None, default_timeout: float = 60.0) -> Sandbox:
        """A sandbox of this client, not started yet: `with client.session("python") as sandbox: ...`."""
        from hotbed.sdk.sandbox import Sandbox  # which imports this

        return Sandbox(template, client=self, label=label, default_timeout=default_timeout)

    def snapshots(self) -> tuple[SnapshotRow, ...]:
        """Every live snapshot, of pools' environments and of sandboxes."""
        return self.link.send(snapshot_calls.listing()).snapshots

    def free_snapshot(self, snapshot_id: str) -> None:
        """Let go of one. Idempotent."""
        self.link.send(snapshot_calls.free(snapshot_id))

    def rollouts(self, *, limit: int = 50, before: int | None = None, **where: str) -> RolloutList:
        """What ran, newest first: at most `limit` (1000) lines of the ledger, and where the next page begins.

        `where` narrows by template, status, kind, sandbox_id, group_id or label.
        """
        return self.link.send(calls.list_rollouts(limit=limit, before=before, where=where))

    def egress(self, *, limit: int = 50, before: int | None = None, **where: str) -> EgressList:
        """What sandboxes tried on the network, newest first, and what was decided.

        `where` narrows by sandbox_id, rollout_id, template, kind, name or verdict.
        """
        return self.link.send(egress_calls.list_egress(limit=limit, before=before, where=where))

    def rollout(self, rollout_id: str) -> RolloutDetail:
        """One line of the ledger with its request and output. Any beginning of an id that is unique will do."""
        return self.link.send(calls.show_rollout(rollout_id))

    def replay(self, rollout_id: str, *, timeout_s: float = REPLAY_TIMEOUT_S) -> ReplayReport:
        """Run a rollout again in a fresh fork of the same template digest; what differs, if anything."""
        return self.link.send(calls.replay(rollout_id, timeout_s=timeout_s))

    def replay_group(self, group_id: str, *, timeout_s: float = REPLAY_TIMEOUT_S) -> GroupReplay:
        """Run every rollout of a group again."""
        return self.link.send(calls.replay_group(group_id, timeout_s=timeout_s))

    def close(self) -> None:
        """End everything made through this client. Idempotent."""
        self.link.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r}{', closed' if self.link.closed else ''})"


class AsyncClient:
    """The same for asyncio, on one event loop after another if need be."""

    def __init__(self, link: Link) -> None:
        self.link = link

    @property
    def url(self) -> str:
        """The node's address."""
        return str(self.link.address)

    async def health(self) -> Health:
        """Whether the node is well, and how busy."""
        return await self.link.asend(calls.health())

    async def capabilities(self) -> Mapping[str, Any]:
        """What the node's host allows, and which isolation results."""
        return await self.link.asend(calls.capabilities())

    async def stats(self) -> Mapping[str, Any]:
        """The node's counters."""
        return await self.link.asend(calls.stats())

    async def templates(self) -> tuple[TemplateRow, ...]:
        """Every template that can be forked."""
        return await self.link.asend(template_calls.listing())

    async def create_template(
        self,
        name: str,
        *,
        image: str = "host",
        preload: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        limits: Mapping[str, float] | None = None,
        network: bool = True,
        egress: EgressPolicy | None = None,
    ) -> TemplateRow:
        """Name a template of this host's system: modules its interpreter has imported, variables, limits, network.

        One of another image is baked, and not ready when this returns: see `Template.bake`.
        """
        request = template_calls.described(name, image, preload, env, limits, egress, network=network)
        return await self.link.asend(template_calls.create(request))

    async def template(self, name: str) -> TemplateRow:
        """One template, and how far it is."""
        return await self.link.asend(template_calls.get(name))

    async def expect(self, template: str, width: int) -> TemplateRow:
        """So many sandboxes of a template will be wanted at once: have as many parked as its node can."""
        return await self.link.asend(template_calls.expect(template, width))

    async def release(self, template: str) -> TemplateRow:
        """None of a template are wanted any more. What lives is left alone."""
        return await self.link.asend(template_calls.expect(template, 0))

    async def delete_template(self, name: str) -> None:
        """Forget a template of your own, or give up its bake. Refused while sandboxes of it live."""
        await self.link.asend(template_calls.delete(name))

    async def images(self) -> tuple[ImageRow, ...]:
        """What a template can be made from: the catalog, and the images that are unpacked on this node."""
        return await self.link.asend(template_calls.images())

    async def sandboxes(self) -> tuple[SandboxRow, ...]:
        """Every live sandbox of this user."""
        return await self.link.asend(calls.list_sandboxes())

    async def delete_sandboxes(
        self,
        *ids: str,
        labels: Mapping[str, str] | None = None,
        group: str | None = None,
        lease_id: str | None = None,
    ) -> tuple[str, ...]:
        """End every sandbox of which all that is given holds, at once; which they were."""
        selector = Selector(ids=ids, labels=dict(labels or {}), group=group, lease_id=lease_id)
        return await self.link.asend(job_calls.delete_sandboxes(selector))

    def group(self, name: str) -> AsyncSandboxGroup:
        """A handle on all sandboxes of one group, those that will be made included."""
        from hotbed.sdk.groups import AsyncSandboxGroup  # which imports this

        return AsyncSandboxGroup(self, name)

    def session(self, template: str, *, label: str | None = None, default_timeout: float = 60.0) -> AsyncSandbox:
        """A sandbox of this client, not started yet: `async with client.session("python") as sandbox: ...`."""
        from hotbed.sdk.async_sandbox import AsyncSandbox  # which imports this

        return AsyncSandbox(template, client=self, label=label, default_timeout=default_timeout)

    async def snapshots(self) -> tuple[SnapshotRow, ...]:
        """Every live snapshot, of pools' environments and of sandboxes."""
        return (await self.link.asend(snapshot_calls.listing())).snapshots

    async def free_snapshot(self, snapshot_id: str) -> None:
        """Let go of one. Idempotent."""
        await self.link.asend(snapshot_calls.free(snapshot_id))

    async def rollouts(self, *, limit: int = 50, before: int | None = None, **where: str) -> RolloutList:
        """What ran, newest first: at most `limit` (1000) lines of the ledger, and where the next page begins.

        `where` narrows by template, status, kind, sandbox_id, group_id or label.
        """
        return await self.link.asend(calls.list_rollouts(limit=limit, before=before, where=where))

    async def egress(self, *, limit: int = 50, before: int | None = None, **where: str) -> EgressList:
        """What sandboxes tried on the network, newest first, and what was decided."""
        return await self.link.asend(egress_calls.list_egress(limit=limit, before=before, where=where))

    async def rollout(self, rollout_id: str) -> RolloutDetail:
        """One line of the ledger with its request and output. Any beginning of an id that is unique will do."""
        return await self.link.asend(calls.show_rollout(rollout_id))

    async def replay(self, rollout_id: str, *, timeout_s: float = REPLAY_TIMEOUT_S) -> ReplayReport:
        """Run a rollout again in a fresh fork of the same template digest; what differs, if anything."""
        return await self.link.asend(calls.replay(rollout_id, timeout_s=timeout_s))

    async def replay_group(self, group_id: str, *, timeout_s: float = REPLAY_TIMEOUT_S) -> GroupReplay:
        """Run every rollout of a group again."""
        return await self.link.asend(calls.replay_group(group_id, timeout_s=timeout_s))

    async def close(self) -> None:
        """End everything made through this client. Idempotent."""
        self.link.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r}{', closed' if self.link.closed else ''})"


AnyClient = Client | AsyncClient
