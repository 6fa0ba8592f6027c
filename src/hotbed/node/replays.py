"""Running what the ledger holds again, and saying whether it came out the same.

A rollout is run again in a fresh fork of the same template with the seed and level it had. An exec in a sandbox that
was kept is run again with everything that happened in that sandbox before it: its birth, the files put into it, the
execs, the changes of its egress policy; and if the sandbox was forked from another, with what had happened in that one.
A grade is graded again, its judge drawing the same numbers; an episode of a pool is played again, with its seed and its
actions. A template that is no longer what it was is refused, since a difference would say nothing about the program.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from hotbed.errors import InvalidRequest, NotFound
from hotbed.node import live, records, regrades
from hotbed.node.differences import compare
from hotbed.node.execs import run_exec
from hotbed.node.leases import Lease, tenant_id
from hotbed.node.ledger.ledger import Ledger
from hotbed.node.ledger.store import Store
from hotbed.node.node import Node
from hotbed.node.played import play_again
from hotbed.node.recordings import Recorded as Heard
from hotbed.node.rollouts import run_rollout
from hotbed.wire.execs import ExecRequest, ExecResponse, RolloutRequest
from hotbed.wire.ledger import Difference, GroupReplay, ReplayReport
from hotbed.wire.live import ForkSandbox
from hotbed.wire.sandboxes import CreateSandbox

GROUP_LIMIT = 4096
_GROUP_WIDTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One event as the ledger has it: its row, its request as JSON, and the bytes of its first stream."""

    row: dict[str, Any]
    request: bytes
    answer: ExecResponse


async def replay(node: Node, rollout_id: str, lease: Lease | None) -> ReplayReport:
    """Run one rollout again. Raises `UnknownRollout`, or `InvalidRequest` for what cannot be run again."""
    ledger = ledger_of(node)
    events = await asyncio.to_thread(ledger.read, lambda store: load(store, rollout_id))
    target = events[-1]
    if target.row["kind"] == "episode":
        return await _episode_again(node, target, lease)
    await check_template(node, target.row)
    if target.row["kind"] == "grade":
        return await _grade_again(node, target, lease)
    if target.row["kind"] == "rollout":
        answer = await _run_again(node, target, lease)
        return _report(target, answer, tuple(compare(target.answer, answer)), replayed=1)
    return await _replay_sandbox(node, events, lease)


async def replay_group(node: Node, group_id: str, lease: Lease | None) -> GroupReplay:
    """Run every rollout of a group again, a few at a time."""
    whose = tenant_id(lease)
    where = {"group_id": group_id, "tenant": whose} if whose else {"group_id": group_id}
    rows = await asyncio.to_thread(ledger_of(node).read, lambda store: store.find(limit=GROUP_LIMIT, where=where))
    if not rows:
        raise NotFound(f"the ledger holds no rollout of group {group_id!r}", hint="`hotbed rollouts` lists them")
    room = asyncio.Semaphore(_GROUP_WIDTH)

    async def one(row: dict[str, Any]) -> ReplayReport:
        async with room:
            return await replay(node, row["id"], lease)

    reports = await asyncio.gather(*(one(row) for row in reversed(rows)))
    return GroupReplay(group_id=group_id, identical=all(item.identical for item in reports), reports=tuple(reports))


def ledger_of(node: Node) -> Ledger:
    """The node's ledger. Raises when it keeps none."""
    if node.ledger is None:
        raise InvalidRequest("this node keeps no ledger", hint="it was started with HOTBED_LEDGER=off")
    return node.ledger


def load(store: Store, rollout_id: str) -> list[Recorded]:
    """What has to be run again, oldest first; the last is what was asked for."""
    row = store.get(rollout_id)
    if row["kind"] in ("rollout", "grade", "episode"):
        return [_recorded(row, store)]
    if row["kind"] != "exec":
        raise InvalidRequest(f"{row['id']} is a {row['kind']}: only rollouts, execs, grades and episodes are run again")
    history = life(store, row["sandbox_id"], row["seq"])
    talked_to = next((item["id"] for item in history if item["kind"] == "process"), None)
    if talked_to is not None:
        raise InvalidRequest(
            f"{talked_to} was talked to while it ran in that sandbox, and what it was told is not kept"
        )
    return [_recorded(item, store) for item in history]


def life(store: Store, sandbox_id: str, upto_seq: int) -> list[dict[str, Any]]:
    """What happened in a sandbox, after what had happened in those that it was forked from, oldest first."""
    parts: list[list[dict[str, Any]]] = []
    while sandbox_id:
        history = store.history(sandbox_id, upto_seq)
        if not history or history[0]["kind"] != "create":
            raise InvalidRequest(
                f"the beginning of sandbox {sandbox_id} is no longer in the ledger",
                hint="its retention has removed it; what is to be run again is run from there",
            )
        parts.append(history)
        sandbox_id, upto_seq = history[0]["details"].get("parent", ""), history[0]["seq"]
    return [event for part in reversed(parts) for event in part]


def _recorded(row: dict[str, Any], store: Store) -> Recorded:
    return Recorded(row=row, request=store.blob(row["request_hash"]), answer=records.answer_of(row, store))


async def check_template(node: Node, row: dict[str, Any]) -> None:
    """Raise when the template that a rollout ran on is another by now."""
    grades = row["kind"] == "grade"
    template = await (node.templates.warm if grades else node.templates.plain)(row["template"])
    if template.digest != row["template_digest"]:
        raise InvalidRequest(
            f"template {row['template']} is {template.digest[:12]} now and was {row['template_digest'][:12]} then",
            hint="a replay needs the very template: the interpreter, packages or image have changed since",
        )


async def _run_again(node: Node, event: Recorded, lease: Lease | None) -> ExecResponse:
    request = msgspec.json.decode(event.request, type=RolloutRequest)
    pinned = {"seed": event.row["seed"], "determinism": event.row["determinism"]}
    first = Heard(id=event.row["id"], tenant=event.row["tenant"], group=event.row["group_id"])
    return await run_rollout(node, replace(request, stream=False, **pinned), lease, again=first)


async def _grade_again(node: Node, event: Recorded, lease: Lease | None) -> ReplayReport:
    line = await regrades.grade_again(node.graders, event.row, event.request, lease)
    differences = tuple(regrades.verdict_differences(event.row, line.result))
    pinned = tuple(line.result["pinned"])
    answer = replace(event.answer, id=line.id, seed_ack=line.result["seed_ack"], pinned=pinned)
    return _report(event, answer, differences, replayed=1)


async def _episode_again(node: Node, event: Recorded, lease: Lease | None) -> ReplayReport:
    entry, differences = await play_again(node.pools, event.row, event.request, event.answer.stdout_bytes, lease)
    node.note(entry, lease)
    answer = replace(event.answer, id=entry.id, seed_ack="off", pinned=())
    return _report(event, answer, tuple(differences), replayed=1)


async def _replay_sandbox(node: Node, events: list[Recorded], lease: Lease | None) -> ReplayReport:
    differences: list[Difference] = []
    execs, answer = 0, events[-1].answer
    async with AsyncExitStack() as sandboxes:
        sandbox_id = ""
        for event in events:
            if event.row["kind"] == "create":
                sandbox_id = await sandboxes.enter_async_context(_sandbox_again(node, sandbox_id, event, lease))
                continue
            if event.row["kind"] == "put":
                await _put_again(node, sandbox_id, event)
                continue
            if event.row["kind"] == "policy":
                await _policy_again(node, sandbox_id, event)
                continue
            execs += 1
            answer = await run_exec(node, sandbox_id, _exec_again(event))
            found = compare(event.answer, answer)
            differences += (replace(item, what=f"{item.what} of exec {execs} ({event.row['id']})") for item in found)
    return _report(events[-1], answer, tuple(differences), replayed=execs)


def _exec_again(event: Recorded) -> ExecRequest:
    return replace(msgspec.json.decode(event.request, type=ExecRequest), stream=False)


@asynccontextmanager
async def _sandbox_again(node: Node, parent_id: str, birth: Recorded, lease: Lease | None) -> AsyncIterator[str]:
    """The first of them is made, the others are forked from the one before."""
    seed, level = birth.row["seed"], birth.row["determinism"]
    if parent_id:
        request = ForkSandbox(seed_mode="crn", base_seed=seed, determinism=level)
        made = (await live.fork(node, node.sessions.get(parent_id), request)).children[0]
    else:
        create = msgspec.json.decode(birth.request, type=CreateSandbox)
        first = Heard(id=birth.row["sandbox_id"], tenant=birth.row["tenant"], group=create.group or "")
        made = await node.create_sandbox(replace(create, seed=seed, determinism=level), lease, again=first)
    try:
        yield made.id
    finally:
        await node.sessions.get(made.id).held.end("deleted")


async def _policy_again(node: Node, sandbox_id: str, event: Recorded) -> None:
    session, given = node.sessions.get(sandbox_id), msgspec.json.decode(event.request)["egress"]
    held, name = session.held, session.template.spec.name
    await node.egress.change(held.box, given, name, held.lease, sandbox_id=sandbox_id)


async def _put_again(node: Node, sandbox_id: str, event: Recorded) -> None:
    put = msgspec.json.decode(event.request)
    if not put["kept"]:
        raise InvalidRequest(
            f"what was put at {put['path']} ({put['size']} bytes) was too large to keep, so this cannot be run again",
            hint=f"the ledger keeps files put into a sandbox up to {records.PUT_LIMIT >> 20} MiB",
        )
    box = node.sessions.get(sandbox_id).held.box
    if put["form"] in ("remove", "mkdir"):
        await box.files(put["form"], put["path"])
        return
    data = event.answer.stdout_bytes
    if put["form"] == "tree":
        await box.unpack(put["path"], _memory_file(data))
        return
    fd, _ = await box.open(put["path"], "w", put["mode"])
    with os.fdopen(fd, "wb") as file:
        file.write(data)


def _memory_file(data: bytes) -> int:
    fd = os.memfd_create("tree", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _report(
    event: Recorded, answer: ExecResponse, differences: tuple[Difference, ...], *, replayed: int
) -> ReplayReport:
    return ReplayReport(
        id=event.row["id"],
        identical=not differences,
        replay_id=answer.id,
        template=event.row["template"],
        template_digest=event.row["template_digest"],
        seed=event.row["seed"],
        determinism=event.row["determinism"],
        seed_ack=answer.seed_ack,
        pinned=answer.pinned,
        differences=differences,
        replayed=replayed,
    )
