"""Everything that a node counts, as one plain object."""

from __future__ import annotations

from typing import Any

from hotbed.node.node import Node


def counted(node: Node) -> dict[str, Any]:
    """Counters of a node, its backend and its ledger."""
    return {
        "node": {
            **node.stats.snapshot(),
            **sandboxes_by_state(node),
            "leases": len(node.leases),
            "sessions": len(node.sessions),
            "pools": len(node.pools),
            "pool_workers": sum(pool.request.n for pool in node.pools),
            "boltz_slots": node.pools.slots.total,
            "boltz_slots_free": node.pools.slots.free,
            "grading": dict(node.graders.counts),
            "running": node.admission.running,
            "queued": node.admission.queued,
            "refused": node.admission.refused,
            "inflight": node.inflight,
            "background": len(node.nursery),
        },
        "backend": dict(node.backend.stats()),
        "ledger": node.ledger.stats() if node.ledger is not None else None,
    }


def sandboxes_by_state(node: Node) -> dict[str, Any]:
    """How many sandboxes are kept and idle, kept and busy, in use by something that will end them, and ending."""
    kept = [session for session in node.sessions if not session.held.is_ending]
    busy = sum(session.active > 0 for session in kept)
    ending = sum(held.is_ending for held in node.live)
    used = len(node.live) - ending - len(kept)
    return {"sandboxes": {"idle": len(kept) - busy, "busy": busy, "used": max(0, used), "ending": ending}}
