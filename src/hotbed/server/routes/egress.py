"""What sandboxes may reach, and what they tried."""

from __future__ import annotations

import asyncio
import secrets
import time
from datetime import datetime, timezone
from typing import Any

from hotbed.egress.policy import NONE
from hotbed.errors import InvalidRequest
from hotbed.node import records, replays
from hotbed.node.egress import outlet_of
from hotbed.node.node import Node
from hotbed.node.sessions import Session
from hotbed.server.operation import Call
from hotbed.server.routes.ledger import PAGE, PAGE_LIMIT, number_of
from hotbed.wire.egress import EgressList, EgressRow, EgressState

FILTERS = ("sandbox_id", "rollout_id", "template", "kind", "name", "verdict")
VERDICTS = ("allowed", "denied", "cut", "failed")


async def get(node: Node, call: Call) -> EgressState:
    """The policy a sandbox has."""
    return _state(node.sessions.get(call.segment("id")))


async def change(node: Node, call: Call) -> EgressState:
    """Hold it to another, and note that for whoever runs again what it does from now on."""
    session = node.sessions.get(call.segment("id"))
    held, template, given = session.held, session.template, call.body.egress
    await node.egress.change(held.box, given, template.spec.name, held.lease, sandbox_id=session.id)
    about = {"policy_id": f"policy_{secrets.token_hex(8)}", "egress": given, "at": time.time()}
    node.note(records.of_policy(session.id, template.spec.name, template.digest, **about), held.lease)
    return _state(session)


def _state(session: Session) -> EgressState:
    outlet = outlet_of(session.held.box)
    policy = outlet.policy if outlet is not None else NONE
    ports = outlet.closed_ports if outlet is not None else ()
    return EgressState(id=session.id, egress=policy.to_wire(), closed_ports=ports)


async def listing(node: Node, call: Call) -> EgressList:
    """A page of attempts, newest first."""
    query = call.request.query_params
    unknown = sorted(set(query) - {*FILTERS, "limit", "before"})
    if unknown:
        raise InvalidRequest(f"attempts cannot be asked for by {unknown[0][:64]!r}", hint=f"by {', '.join(FILTERS)}")
    limit = min(number_of(query.get("limit"), "limit") or PAGE, PAGE_LIMIT)
    if query.get("verdict", "denied") not in VERDICTS:
        raise InvalidRequest(f"{query['verdict'][:64]!r} is no verdict", hint=f"verdicts: {', '.join(VERDICTS)}")
    before = number_of(query.get("before"), "before")
    where = {name: query[name] for name in FILTERS if name in query}
    if call.sight is not None:
        where["tenant"] = call.sight.id
    ledger = replays.ledger_of(node)
    rows = await asyncio.to_thread(ledger.read, lambda store: store.attempts(limit=limit, before=before, where=where))
    return EgressList(
        attempts=tuple(map(_row, rows)),
        next=rows[-1]["seq"] if len(rows) == limit else None,
    )


def _row(found: dict[str, Any]) -> EgressRow:
    moment = datetime.fromtimestamp(found["at"], timezone.utc).isoformat(timespec="milliseconds")
    names = {item for item in EgressRow.__dataclass_fields__ if item not in ("at", "leak")}
    return EgressRow(
        at=moment.replace("+00:00", "Z"), leak=bool(found["leak"]), **{name: found[name] for name in names}
    )
