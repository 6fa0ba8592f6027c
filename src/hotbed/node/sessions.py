"""Sandboxes that outlive one exec: their names, ages and ends.

A session ends when it is deleted, when its lease does, when its TTL runs out, when it has been idle for its idle TTL,
or when its sandbox dies. However it ends, its id answers `session_gone` from then on, for as long as the registry
remembers it, and so does an id of an earlier run of the node; one that never was answers `not_found`.

Each session has one timer. It fires at the earlier of the two deadlines; a session that was used meanwhile sets it
again. `next_deadline` is the pure rule.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone

from hotbed.errors import AtCapacity, NotFound, SandboxGone, SandboxSuspended
from hotbed.node.held import HeldBox
from hotbed.node.jobs import Jobs
from hotbed.node.leases import tenant_id
from hotbed.node.remembered import Remembered
from hotbed.node.tenants import Tenant
from hotbed.runtime.base import Determinism, Limits, Template
from hotbed.wire.sandboxes import SandboxCreated, SandboxRow

REMEMBERED = 10_000
TUNNELS_LIMIT = 256

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    """One sandbox with a name."""

    id: str
    held: HeldBox
    template: Template
    seed: str
    determinism: Determinism = "none"
    ttl_s: float | None
    idle_ttl_s: float | None
    label: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    created_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    born_s: float = field(default_factory=time.monotonic)
    used_s: float = field(default_factory=time.monotonic)
    jobs: Jobs = field(default_factory=Jobs)
    active: int = 0
    tunnels: int = 0
    exec_count: int = 0
    fork_count: int = 0
    timer: asyncio.TimerHandle | None = None
    limits: Limits | None = None
    parent: str = ""
    suspended: str = ""  # how, if it is

    def created(self, create_time_ms: float) -> SandboxCreated:
        """The answer to who had it made."""
        name, box = self.template.spec.name, self.held.box
        return SandboxCreated(
            id=self.id,
            template=name,
            template_id=name,
            fork_time_ms=round(box.fork_time_ms, 3),
            create_time_ms=round(create_time_ms, 3),
            warm_hit=box.warm_hit,
            isolation=box.isolation,
            seed=self.seed,
        )

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """Not idle for as long as this lasts, suspended or not."""
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1
            self.used_s = time.monotonic()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The same while something runs in it. Raises `SandboxSuspended` if nothing can now."""
        if self.suspended:
            raise SandboxSuspended("the sandbox is suspended", hint="resume it first")
        with self.looked_at():
            yield

    @contextmanager
    def tunnel(self) -> Iterator[None]:
        """One connection into it lasts as long as this. Raises `AtCapacity` for too many."""
        if self.tunnels >= TUNNELS_LIMIT:
            raise AtCapacity(
                f"{TUNNELS_LIMIT} tunnels into this sandbox are open", hint="close some", retry_after_s=1.0
            )
        self.tunnels += 1
        try:
            yield
        finally:
            self.tunnels -= 1

    def row(self) -> SandboxRow:
        """The session as listed."""
        now = time.monotonic()
        box, lease = self.held.box, self.held.lease
        return SandboxRow(
            id=self.id,
            template=self.template.spec.name,
            template_id=self.template.spec.name,
            state="suspended" if self.suspended else "running",
            created_at=self.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            age_s=round(now - self.born_s, 3),
            idle_s=0.0 if self.active else round(now - self.used_s, 3),
            exec_count=self.exec_count,
            isolation=box.isolation,
            warm_hit=box.warm_hit,
            fork_time_ms=round(box.fork_time_ms, 3),
            label=self.label,
            group=self.group,
            labels=self.labels,
            lease_id=lease.id if lease is not None and lease.held else None,
            seed=self.seed,
            ttl_s=self.ttl_s,
            idle_ttl_s=self.idle_ttl_s,
            parent=self.parent,
        )


def next_deadline(session: Session, now_s: float) -> tuple[float, str] | None:
    """When to look at a session again, and why it would end then; None when nothing can run out.

    A session in use cannot be idle, but its idle time may start at any moment: look again one idle TTL from now. Nor
    can a suspended one, which waits for somebody to resume it.
    """
    deadlines = []
    if session.ttl_s is not None:
        deadlines.append((session.born_s + session.ttl_s, "ttl"))
    if session.idle_ttl_s is not None:
        idle_since = now_s if session.active or session.suspended else session.used_s
        deadlines.append((idle_since + session.idle_ttl_s, "idle"))
    return min(deadlines, default=None)


class Sessions:
    """Every live session, and the names of the recently ended."""

    def __init__(self, node_id: str, *, remembered: int = REMEMBERED) -> None:
        self._node_id = node_id
        self._live: dict[str, Session] = {}
        self._ended = Remembered[tuple[str, str]](remembered)  # why, and whose it was

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._live.values()))

    def new_id(self) -> str:
        """A name that nobody can guess. It begins with the node's own, so that the next run of it is told apart."""
        return f"{self._node_id}{secrets.token_hex(16)}"

    def add(self, session: Session) -> None:
        """Take a session in and start its clock."""
        self._live[session.id] = session
        session.held.on_end = lambda reason: self._forget(session, reason)
        self._watch_clock(session)

    def get(self, session_id: str, tenant: Tenant | None = None) -> Session:
        """A live session. Raises `SandboxGone` for one that has ended, `NotFound` for one that never was.

        For a tenant, somebody else's never was.
        """
        session = self._live.get(session_id)
        owner = tenant_id(session.held.lease if session is not None else None)  # the same steps for what is not there
        if session is None or (tenant is not None and owner != tenant.id):
            reason, whose = self._ended.get(session_id) or ("", "")
            if reason and (tenant is None or whose == tenant.id):
                raise SandboxGone(f"the sandbox has ended: {REASONS.get(reason, reason)}")
            if (
                session is None
                and len(session_id) == len(self._node_id) + 32
                and not session_id.startswith(self._node_id)
            ):
                raise SandboxGone("the sandbox ended with the node that made it", hint="the node restarted since")
            raise NotFound(f"no sandbox {session_id[:64]!r}", hint="it never was, or it ended long ago")
        return session

    def _forget(self, session: Session, reason: str) -> None:
        if session.timer is not None:
            session.timer.cancel()
        self._live.pop(session.id, None)
        self._ended.add(session.id, (reason, tenant_id(session.held.lease)))
        log.info("event=sandbox_ended sandbox=%s reason=%s execs=%d", session.id, reason, session.exec_count)

    def _watch_clock(self, session: Session) -> None:
        now = time.monotonic()
        deadline = next_deadline(session, now)
        if deadline is None:
            return
        when, reason = deadline
        if when <= now:
            session.held.discard(reason)
            return
        loop = asyncio.get_running_loop()
        session.timer = loop.call_later(when - now, self._watch_clock, session)


REASONS = {
    "deleted": "it was deleted",
    "ttl": "its ttl_s ran out",
    "idle": "it was idle for its idle_ttl_s",
    "lease_ended": "the lease it was made under ended",
    "shutdown": "the node shut down",
    "snapshot": "its last snapshot was taken",
}
