"""Which sandboxes a selector means. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hotbed.node.sessions import Session
from hotbed.wire.sandboxes import Selector


def selected(sessions: Iterable[Session], selector: Selector) -> list[Session]:
    """Those for which everything that the selector names holds."""
    ids = frozenset(selector.ids)
    return [session for session in sessions if _fits(session, selector, ids)]


def _fits(session: Session, selector: Selector, ids: frozenset[str]) -> bool:
    lease = session.held.lease
    return (
        (not ids or session.id in ids)
        and (selector.group is None or session.group == selector.group)
        and (selector.lease_id is None or (lease is not None and lease.id == selector.lease_id))
        and _has(session.labels, selector.labels)
    )


def _has(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(labels.get(name) == value for name, value in wanted.items())
