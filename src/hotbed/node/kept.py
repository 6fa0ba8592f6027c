"""Snapshots that are kept, of both kinds: of a pool's environment, with its memory, and of a sandbox, its files."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Protocol

from hotbed.egress.policy import Policy
from hotbed.node.leases import Lease
from hotbed.node.pool import Pool
from hotbed.runtime import snapshots as runtime
from hotbed.runtime.base import Limits, Template
from hotbed.runtime.layering import Layer
from hotbed.runtime.snapshots import LiveFork
from hotbed.wire.snapshots import SnapshotRow


class Registry(Protocol):
    """Who keeps them."""

    def drop(self, kept: Snapshot, reason: str) -> None:
        """Free one. Returns at once; idempotent."""
        ...


class Snapshot(Protocol):
    """A snapshot that is kept, of either kind. A member of its lease."""

    id: str
    lease: Lease | None

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        ...

    def discard(self, reason: str) -> None:
        """Free it. Returns at once; idempotent."""
        ...

    def row(self) -> SnapshotRow:
        """The snapshot as listed."""
        ...

    def is_alive(self) -> bool:
        """Whether anything can be made of it."""
        ...

    async def free(self) -> None:
        """Let go of what it holds. For `Snapshots`, once."""
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class Kept:
    """A snapshot of a pool's environment."""

    taken: runtime.Snapshot
    livefork: LiveFork
    pool: Pool
    lease: Lease | None
    owner: Registry
    take_time_ms: float
    id: str = field(default_factory=lambda: f"sn_{secrets.token_hex(12)}")
    born_s: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return self.taken.size

    def discard(self, reason: str) -> None:
        """Free it. Returns at once; idempotent."""
        self.owner.drop(self, reason)

    def row(self) -> SnapshotRow:
        """The snapshot as listed."""
        return SnapshotRow(
            id=self.id,
            pool=self.pool.id,
            template=self.pool.template.spec.name,
            size=self.taken.size,
            layer_size=self.taken.layer_bytes,
            age_s=round(time.monotonic() - self.born_s, 3),
            take_time_ms=self.take_time_ms,
            skipped=self.taken.skipped,
            lease_id=self.lease.id if self.lease is not None else None,
        )

    def is_alive(self) -> bool:
        """Whether it can still be restored."""
        return self.livefork.is_alive(self.taken)

    async def free(self) -> None:
        """Let go of what it holds."""
        await self.livefork.release(self.taken)


@dataclass(slots=True, kw_only=True, eq=False)
class KeptLayer:
    """A snapshot of a sandbox's files."""

    layer: Layer
    template: Template
    limits: Limits | None
    egress: Policy | None
    sandbox: str
    lease: Lease | None
    owner: Registry
    take_time_ms: float
    id: str = field(default_factory=lambda: f"sn_{secrets.token_hex(12)}")
    born_s: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        """Bytes that it holds, without what is below it."""
        return self.layer.size

    def discard(self, reason: str) -> None:
        """Free it. Returns at once; idempotent."""
        self.owner.drop(self, reason)

    def row(self) -> SnapshotRow:
        """The snapshot as listed."""
        return SnapshotRow(
            id=self.id,
            sandbox=self.sandbox,
            template=self.template.spec.name,
            size=self.layer.size,
            layer_size=self.layer.size,
            age_s=round(time.monotonic() - self.born_s, 3),
            take_time_ms=self.take_time_ms,
            skipped=self.layer.skipped,
            lease_id=self.lease.id if self.lease is not None and self.lease.held else None,
        )

    def is_alive(self) -> bool:
        """Whether sandboxes can still be made with it."""
        return self.layer.is_alive()

    async def free(self) -> None:
        """Let go of it; what was made with it keeps it."""
        self.layer.close()
