"""Every sandbox that lives right now, by template and by what it does."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hotbed.dashboard.look import Look, Page
from hotbed.node.held import HeldBox

CELLS = 1500  # drawn one by one; what is beyond is in the counts
ROWS = 200
STATES = ("running", "idle", "worker", "ending")


async def show(look: Look) -> Page:
    """The page."""
    return Page(template="sandboxes.html", title="Sandboxes", values=_live(look))


async def grid(look: Look) -> Page:
    """What of it changes."""
    return Page(template="sandboxes_grid.html", title="", values=_live(look), part=True)


def _live(look: Look) -> dict[str, Any]:
    node = look.node
    sessions = {id(session.held): session for session in node.sessions}
    workers = {id(worker.held) for pool in node.pools for worker in pool.workers}
    counts: dict[str, Counter[str]] = {}
    cells: dict[str, list[tuple[str, str]]] = {}
    drawn = 0
    for held in sorted((held for held in node.live if look.viewer.sees(held.lease)), key=lambda held: held.box.id):
        session = sessions.get(id(held))
        state = _state(
            held, kept=session is not None, active=bool(session and session.active), worker=id(held) in workers
        )
        counts.setdefault(held.template, Counter())[state] += 1
        if drawn < CELLS:
            cells.setdefault(held.template, []).append((state, session.id if session is not None else ""))
            drawn += 1
    kept = [session.row() for session in node.sessions if look.viewer.sees(session.held.lease)]
    kept.sort(key=lambda row: row.age_s)
    return {
        "states": STATES,
        "counts": sorted(counts.items()),
        "cells": sorted(cells.items()),
        "total": sum(sum(count.values()) for count in counts.values()),
        "drawn": drawn,
        "kept": kept[:ROWS],
        "kept_total": len(kept),
        "limit": node.admission.limit,
    }


def _state(held: HeldBox, *, kept: bool, active: bool, worker: bool) -> str:
    """What a sandbox does. One that is neither kept nor a pool's is there for one run, and running it."""
    if held.is_ending:
        return "ending"
    if worker:
        return "worker"
    return "running" if active or not kept else "idle"
