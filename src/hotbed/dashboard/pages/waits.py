"""How much of each step a trainer had to wait for environments, and for what."""

from __future__ import annotations

from typing import Any

from hotbed.dashboard import charts
from hotbed.dashboard.look import Look, Page
from hotbed.node.waits import PHASES, Meter, Step, steps, total

PAUSES = {"0.1": 0.1, "0.5": 0.5, "2": 2.0, "10": 10.0}
STEPS = 60
TABLE = 20
LEAST = 0.005  # a smaller share is not worth its words
PARTS = (*PHASES, "client")  # what passed in a step while nothing was in flight is the client's own


async def show(look: Look) -> Page:
    """The page."""
    return Page(template="waits.html", title="Waiting", values=_waits(look))


async def part(look: Look) -> Page:
    """What of it changes."""
    return Page(template="waits_part.html", title="", values=_waits(look), part=True)


def _waits(look: Look) -> dict[str, Any]:
    pause = look.choice("pause", PAUSES, "0.5")
    meters = [meter for meter in look.node.waits if look.viewer.tenant is None or meter.tenant == look.viewer.tenant]
    now_s = look.node.waits.clock()
    clients = [client for meter in reversed(meters) if (client := _client(meter, now_s, PAUSES[pause]))]
    return {"clients": clients, "pause": pause, "pauses": tuple(PAUSES), "parts": PARTS}


def _client(meter: Meter, now_s: float, pause_s: float) -> dict[str, Any] | None:
    """One client's steps. The first has no known beginning, so it is shown and not counted."""
    found = steps(meter.told(now_s), pause_s=pause_s)[-STEPS:]
    if not found:
        return None
    counted = [step for step in found if not step.first]
    length_s = sum(step.ended_s - step.begun_s for step in counted)
    rows = [divided(step) for step in found]
    whole = total(divided(step, client=False) for step in counted)
    return {
        "id": meter.client,
        "tenant": meter.tenant,
        "busy": bool(meter.open),
        "steps": len(counted),
        "length_s": length_s / len(counted) if counted else 0.0,
        "share": sum(step.waited_s for step in counted) / length_s if length_s else None,
        "shares": {phase: whole[phase] / length_s for phase in PHASES if whole[phase] > LEAST * length_s},
        "tallest_s": max(sum(row.values()) for row in rows),
        "bars": charts.stacked(rows, PARTS, width=600, height=120),
        "table": [
            (now_s - step.ended_s, step, row) for step, row in reversed(list(zip(found, rows, strict=True))[-TABLE:])
        ],
        "ended_s": now_s - found[-1].ended_s,
    }


def divided(step: Step, *, client: bool = True) -> dict[Any, float]:
    """A step's seconds by part. What the requests did is scaled to the time that any was in flight."""
    spent = sum(step.seconds.values())
    scale = step.waited_s / spent if spent else 0.0
    parts: dict[Any, float] = {phase: seconds * scale for phase, seconds in step.seconds.items()}
    if client:
        parts["client"] = max(0.0, step.ended_s - step.begun_s - step.waited_s)
    return parts
