"""Live operations on sandboxes that are kept: fork, snapshot, suspend, resume.

A fork is a snapshot that nobody keeps: one layer is taken of the parent, `count` sandboxes are made to stand on it, and
it is let go of. Whatever can be refused is refused before the parent is touched; what fails after that leaves no child
behind. Children are the parent's equals: they are under the same lease, and its end is not theirs.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace

from hotbed.errors import NotSupported, SandboxBusy
from hotbed.grading.seeds import group_seeds
from hotbed.node import records
from hotbed.node.held import HeldBox
from hotbed.node.kept import KeptLayer
from hotbed.node.leases import Lease, claim_of
from hotbed.node.node import Node
from hotbed.node.sessions import Session
from hotbed.runtime.base import Backend, BoxRequest
from hotbed.runtime.layering import Layer, Layering
from hotbed.runtime.replay.streams import derive
from hotbed.wire.checks import fresh_seed
from hotbed.wire.live import ForkSandbox, SandboxForked, SandboxState, SnapshotSandbox
from hotbed.wire.sandboxes import CreateSandbox, SandboxCreated


async def fork(node: Node, session: Session, request: ForkSandbox) -> SandboxForked:
    """Make children of one instant of a sandbox. Raises before anything is done when there is no room for all."""
    begun = time.perf_counter()
    node.check_open()
    layering = layering_of(node.backend)
    lease = session.held.lease
    claimant, share = claim_of(lease)
    node.admission.check_room(claimant, request.count, share=share)
    node.snapshots.check_room()
    group = f"fg_{secrets.token_hex(12)}"
    births = births_of(session, inherited(session, request), group)
    with node.working(), session.looked_at():
        layer = await layering.take(session.held.box)
        copied = time.perf_counter()
        try:
            held = await _fork_all(node, session, [plan for plan, _ in births], layer, lease)
        finally:
            layer.close()
    children = [_keep(node, session, box, birth) for box, (_, birth) in zip(held, births, strict=True)]
    node.stats.counts["forked_sandboxes"] += len(children)
    return SandboxForked(
        parent=session.id,
        group=group,
        children=tuple(children),
        seeds=tuple(child.seed for child in children),
        skipped=layer.skipped,
        how=layer.how,
        size=layer.size,
        copy_time_ms=round((copied - begun) * 1e3, 3),
        time_ms=round((time.perf_counter() - begun) * 1e3, 3),
    )


def inherited(session: Session, request: ForkSandbox) -> ForkSandbox:
    """The children of a pinned sandbox are pinned by it, each fork in its own way: a chain of them can be run again."""
    session.fork_count += 1
    if session.determinism == "none" or request.determinism == "none":
        return request
    request = replace(request, determinism=request.determinism or session.determinism)
    if request.base_seed is not None or request.seed_mode == "deterministic":
        return request
    return replace(request, base_seed=derive(bytes.fromhex(session.seed), "fork", session.fork_count).hex())


def births_of(session: Session, request: ForkSandbox, group: str) -> list[tuple[BoxRequest, CreateSandbox]]:
    """What to fork and what to keep, for each child."""
    seeds = group_seeds(request.count, request.seed_mode, request.base_seed)
    labels: Sequence[str] = request.labels or [session.label] * request.count
    births = []
    for seed, label in zip(seeds, labels, strict=True):
        level = request.determinism or ("rng" if seed is not None else "none")
        seed = seed or fresh_seed()
        pinned = bytes.fromhex(seed) if level != "none" else None
        plan = BoxRequest(limits=session.limits, seed=pinned, determinism=level, use_spare=False)
        create = CreateSandbox(
            template=session.template.spec.name,
            ttl_s=request.ttl_s or session.ttl_s,
            idle_ttl_s=request.idle_ttl_s or session.idle_ttl_s,
            label=label,
            labels=session.labels,
            seed=seed,
            determinism=level,
            group=group,
        )
        births.append((plan, create))
    return births


async def _fork_all(
    node: Node, session: Session, plans: Sequence[BoxRequest], layer: Layer, lease: Lease | None
) -> list[HeldBox]:
    """All of them, born; or none."""
    held: list[HeldBox] = []
    egress = node.egress.inherited(session.held.box)
    try:
        for plan in plans:
            plan = replace(plan, layer=layer, egress=egress)
            held.append(await node.fork(session.template, plan, lease, patient=False))
        await asyncio.gather(*(one.box.ready() for one in held))
    except BaseException:
        for one in held:
            one.discard("not_ready")
        raise
    return held


def _keep(node: Node, parent: Session, held: HeldBox, birth: CreateSandbox) -> SandboxCreated:
    node.stats.fork_ms.add(held.box.fork_time_ms)
    session = node.keep(held, parent.template, birth, birth.seed or "", parent=parent.id, limits=parent.limits)
    made = session.created(held.box.fork_time_ms)
    entry = records.of_create(birth, made, digest=parent.template.digest, at=time.time(), parent=parent.id)
    node.note(entry, held.lease)
    return made


async def snapshot(node: Node, session: Session, request: SnapshotSandbox) -> KeptLayer:
    """Keep a sandbox's files; with `end`, it ends."""
    begun = time.perf_counter()
    node.check_open()
    layering = layering_of(node.backend)
    node.snapshots.check_room()
    with node.working(), session.looked_at():
        egress = node.egress.inherited(session.held.box)
        layer = await layering.take(session.held.box, end=request.end)
    if request.end:
        await session.held.end("snapshot")
    kept = KeptLayer(
        layer=layer,
        template=session.template,
        limits=session.limits,
        egress=egress,
        sandbox=session.id,
        lease=session.held.lease,
        owner=node.snapshots,
        take_time_ms=round((time.perf_counter() - begun) * 1e3, 3),
    )
    node.snapshots.keep(kept)
    return kept


async def suspend(node: Node, session: Session) -> SandboxState:
    """Hold a sandbox still until it is resumed. Twice is once."""
    layering = layering_of(node.backend)
    if not session.suspended:
        if session.active:
            raise SandboxBusy("something runs in the sandbox", hint="wait for the exec, or cancel it, then suspend")
        session.suspended = await layering.freeze(session.held.box)
    reclaimed = await layering.reclaim(session.held.box)
    return SandboxState(id=session.id, state="suspended", how=session.suspended, reclaimed=reclaimed)


async def resume(node: Node, session: Session) -> SandboxState:
    """Let it go on. Twice is once."""
    layering = layering_of(node.backend)
    how, session.suspended = session.suspended, ""
    if how:
        session.used_s = time.monotonic()
        await layering.thaw(session.held.box)
    return SandboxState(id=session.id, state="running", how=how)


def layering_of(backend: Backend) -> Layering:
    """What a backend offers for this. Raises `NotSupported`."""
    layering = getattr(backend, "layers", None)
    if layering is None:
        raise NotSupported("this node's isolation cannot fork or suspend sandboxes")
    found: Layering = layering
    return found
