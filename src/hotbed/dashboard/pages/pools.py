"""Pools with their workers, and the snapshots of running environments."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hotbed.dashboard.look import Look, Page

WORKERS = 512


async def show(look: Look) -> Page:
    """The page."""
    return Page(template="pools.html", title="Pools", values=_pools(look))


async def part(look: Look) -> Page:
    """What of it changes."""
    return Page(template="pools_part.html", title="", values=_pools(look), part=True)


def _pools(look: Look) -> dict[str, Any]:
    node = look.node
    rows = [pool.row() for pool in node.pools if look.viewer.sees(pool.lease)]
    snapshots = [kept.row() for kept in node.snapshots if look.viewer.sees(kept.lease)]
    return {
        "pools": [(row, Counter(worker.state for worker in row.workers), row.workers[:WORKERS]) for row in rows],
        "snapshots": snapshots[:WORKERS],
        "snapshot_total": len(snapshots),
        "slots": (node.pools.slots.total, node.pools.slots.free) if look.viewer.admin else None,
    }
