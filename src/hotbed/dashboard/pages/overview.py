"""The node at a glance: how it is, how full, how fast."""

from __future__ import annotations

import time
from typing import Any

from starlette.responses import JSONResponse, Response

from hotbed.dashboard.history import LATENCIES, SPANS, latest
from hotbed.dashboard.look import Look, Page
from hotbed.dashboard.rendering import HEADERS
from hotbed.node.counters import counted
from hotbed.node.leases import tenant_id

TABLE_ROWS = 15


async def show(look: Look) -> Page:
    """The page."""
    span = look.choice("span", SPANS, "15m")
    values = {"span": span, "spans": SPANS, "table": _table(look, span), **_state(look)}
    return Page(template="overview.html", title="Overview", values=values)


async def state(look: Look) -> Page:
    """What of it changes."""
    return Page(template="overview_state.html", title="", values=_state(look), part=True)


async def plots(look: Look) -> Response:
    """What the plots show."""
    look.viewer.check_admin()
    return JSONResponse(look.house.history.columns(look.choice("span", SPANS, "15m")), headers=dict(HEADERS))


def _state(look: Look) -> dict[str, Any]:
    if not look.viewer.admin:
        return _own_state(look)
    node, health = look.node, look.node.health()
    snapshot = counted(node)
    stats = snapshot["node"]
    histograms = {name: stats[name] for name in LATENCIES}
    return {
        "health": health,
        "up_s": time.monotonic() - node.stats.begun_s,
        "stats": stats,
        "ledger": snapshot["ledger"],
        "counts": {
            "rollouts": histograms["rollout_ms"]["count"],
            "execs": histograms["exec_ms"]["count"],
            "graded": stats["grading"]["graded"],
        },
        "now": latest(look.house.history.samples("15m")),
        "outcomes": sorted(stats["outcomes"].items(), key=lambda item: -item[1]),
        "snapshots": len(node.snapshots),
        "snapshot_bytes": node.snapshots.size,
        "spares": snapshot["backend"].get("spares", 0),
    }


def _own_state(look: Look) -> dict[str, Any]:
    """What a tenant is told: of its own work only."""
    tenant = look.viewer.tenant or ""
    admission = look.node.admission
    return {
        "own": {
            "tenant": tenant,
            "running": admission.held(tenant),
            "queued": admission.waiting(tenant),
            "sessions": sum(tenant_id(session.held.lease) == tenant for session in look.node.sessions),
            "pools": sum(tenant_id(pool.lease) == tenant for pool in look.node.pools),
        },
    }


def _table(look: Look, span: str) -> list[Any]:
    """The plots' numbers for who does not look at plots: evenly spaced samples, newest first."""
    if not look.viewer.admin:
        return []
    rows = look.house.history.samples(span)
    every = max(1, len(rows) // TABLE_ROWS)
    return list(reversed(rows[::-1][::every][::-1]))
