"""What ran: a list that stays quick however long it gets, and a page for each line of it.

The list goes by keys, not by offsets: a page begins below the `seq` that the one before ended with, and each filter has
an index in that order. What a program was and printed is a stranger's text: it is shown bounded and escaped, and the
whole of it is a download that no browser shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from hotbed.dashboard import charts, text
from hotbed.dashboard.look import Look, Page
from hotbed.dashboard.rendering import HEADERS
from hotbed.errors import InvalidRequest, UnknownRollout
from hotbed.node import replays
from hotbed.node.ledger.store import Store

PAGE = 50
FILTERS = ("kind", "status", "template", "label", "group_id", "sandbox_id")
KINDS = ("rollout", "exec", "grade", "create", "put", "policy", "episode")
STATUSES = (  # of execs, then of grades
    *("ok", "exit", "timeout", "oom", "signal", "disk", "pids", "output"),
    *("failed", "candidate_error", "output_limit", "spec_error", "infra_error"),
)
STREAMS = {"request": "json", "stdout": "bin", "stderr": "bin"}
REQUEST_LIMIT = 1 << 20  # a larger one is not taken apart
AGAIN = ("rollout", "exec", "grade", "episode")


async def listing(look: Look) -> Page:
    """A page of them, newest first."""
    where = {name: value for name in FILTERS if (value := look.query(name))}
    before = look.number("before")
    mine = where if look.viewer.tenant is None else {**where, "tenant": look.viewer.tenant}
    rows = await look.read(lambda store: store.find(limit=PAGE + 1, before=before, where=mine))
    more = rows is not None and len(rows) > PAGE
    values = {
        "rows": (rows or [])[:PAGE],
        "where": where,
        "kinds": KINDS,
        "statuses": STATUSES,
        "older": urlencode({**where, "before": rows[PAGE - 1]["seq"]}) if more and rows else "",
        "newest": urlencode(where) if before is not None else None,
        "ledger": rows is not None,
    }
    return Page(template="rollouts.html", title="Rollouts", values=values)


async def show(look: Look) -> Page:
    """One of them."""
    recorded = await _recorded(look)
    return Page(template="rollout.html", title=str(recorded["row"]["id"]), values={**recorded, "report": None})


async def download(look: Look) -> Response:
    """What it was asked or printed, whole, as a file."""
    stream, rollout_id = look.segment("stream"), look.segment("id")
    if stream not in STREAMS:
        raise UnknownRollout(f"a rollout has no {stream[:40]!r}", hint=f"it has {', '.join(STREAMS)}")
    found = await look.read(lambda store: store.blob(_row(store, rollout_id, look.viewer.tenant)[f"{stream}_hash"]))
    headers = {
        **HEADERS,
        "content-security-policy": "sandbox; default-src 'none'",
        "content-disposition": f'attachment; filename="{stream}.{STREAMS[stream]}"',
    }
    return Response(found or b"", headers=headers, media_type="application/octet-stream")


async def replay(look: Look) -> Page:
    """Run it again, now, in the node's own name: another tenant's program is not put into the operator's ledger."""
    look.viewer.check_admin()
    recorded = await _recorded(look)
    report = await replays.replay(look.node, recorded["row"]["id"], None)
    part = "hx-request" in look.request.headers
    template = "replay.html" if part else "rollout.html"
    return Page(template=template, title=str(recorded["row"]["id"]), values={**recorded, "report": report}, part=part)


async def _recorded(look: Look) -> dict[str, Any]:
    rollout_id, tenant = look.segment("id"), look.viewer.tenant
    found = await look.read(lambda store: _load(store, rollout_id, tenant))
    if found is None:
        raise InvalidRequest("this node keeps no ledger", hint="it was started with HOTBED_LEDGER=off")
    return found


def _load(store: Store, rollout_id: str, tenant: str | None) -> dict[str, Any]:
    row = _row(store, rollout_id, tenant)
    request = store.blob(row["request_hash"])
    known = row["fork_ms"] + row["exec_ms"]
    timings = {"fork": row["fork_ms"], "exec": row["exec_ms"], "rest": max(0.0, row["total_ms"] - known)}
    return {
        "row": row,
        "programs": programs(request),
        "stdout": text.excerpt(store.blob(row["stdout_hash"])),
        "stderr": text.excerpt(store.blob(row["stderr_hash"])),
        "timings": timings,
        "bars": charts.along(timings, tuple(timings), width=600, height=10),
        "again": row["kind"] in AGAIN,
    }


def _row(store: Store, rollout_id: str, tenant: str | None) -> dict[str, Any]:
    """A line by its whole id. Raises `UnknownRollout`, also for somebody else's."""
    row = store.get(rollout_id)
    if row["id"] != rollout_id or (tenant is not None and row["tenant"] != tenant):
        raise UnknownRollout(f"the ledger holds no rollout {rollout_id[:80]!r}", hint="retention may have removed it")
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A piece of what was asked, under its name."""

    name: str
    shown: text.Excerpt


def programs(request: bytes) -> list[Program]:
    """What a request ran: the code, the commands, the files, and then all the rest of it as JSON."""
    if len(request) > REQUEST_LIMIT:
        return [Program(name="request", shown=text.excerpt(request))]
    asked = json.loads(request or b"{}")
    found = [_program(name, asked.pop(name)) for name in ("code", "command", "commands") if asked.get(name)]
    spec = asked.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("tests"), str):
        found.append(_program("tests", spec.pop("tests")))
    rest = {name: value for name, value in asked.items() if value not in (None, "", [], {}, False)}
    if rest:
        found.append(_program("the rest of the request", rest))
    return found


def _program(name: str, value: Any) -> Program:
    if isinstance(value, Mapping) and name == "code":
        value = "\n".join(f"# ---- {path}\n{content}" for path, content in value.items())
    words = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return Program(name=name, shown=text.excerpt(words.encode("utf-8", "replace")))
