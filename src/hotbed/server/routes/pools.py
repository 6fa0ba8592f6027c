"""Pools of environment workers, and the environment directories they are made of."""

from __future__ import annotations

import time

from starlette.responses import Response

from hotbed.errors import NotFound, PoolClosed
from hotbed.node import episodes, relay
from hotbed.node.node import Node
from hotbed.node.pool import Pool
from hotbed.node.replays import ledger_of
from hotbed.server.operation import Call, read_body
from hotbed.wire.pools import EnvDir, EpisodesRecorded, PoolCreated, PoolList, PoolRow, WorkerOutput, WorkersEnded
from hotbed.wire.sandboxes import Deleted


async def get_env_dir(node: Node, call: Call) -> EnvDir:
    """Whether a directory is here already."""
    return node.pools.env_dirs.get(call.segment("digest"))


async def put_env_dir(node: Node, call: Call) -> EnvDir:
    """Take a directory's tar."""
    node.check_open()
    return await node.pools.env_dirs.put(call.segment("digest"), call.request.stream())


async def create(node: Node, call: Call) -> PoolCreated:
    """Make one with all its workers."""
    node.check_open()
    if call.body.record:
        ledger_of(node)
    return await node.pools.create(call.body, call.lease)


async def listing(node: Node, call: Call) -> PoolList:
    """All that live."""
    return PoolList(pools=tuple(pool.row() for pool in node.pools if call.sees(pool.lease)))


async def get(node: Node, call: Call) -> PoolRow:
    """One that lives."""
    return pool_of(node, call).row()


async def delete(node: Node, call: Call) -> Deleted:
    """End one; the answer comes when nothing of it is left. Ending it again is no error."""
    pool_id = call.segment("id")
    try:
        await pool_of(node, call).close("deleted")
    except PoolClosed:
        pass
    return Deleted(id=pool_id)


async def end_workers(node: Node, call: Call) -> WorkersEnded:
    """End workers that their client gave up, and say how each ended."""
    return WorkersEnded(workers=await pool_of(node, call).end(call.body.workers))


async def record(node: Node, call: Call) -> EpisodesRecorded:
    """Keep episodes that their client tells of."""
    pool = pool_of(node, call)
    entries = episodes.entries_of(pool, call.body.episodes, at=time.time())
    for entry in entries:
        node.note(entry, pool.lease)
    return EpisodesRecorded(ids=tuple(entry.id for entry in entries))


async def exchange(node: Node, call: Call) -> Response:
    """Pass frames to workers and back, for a client that is elsewhere."""
    pool = pool_of(node, call)
    request = relay.parse(await read_body(call.request, relay.BODY_LIMIT))
    with node.waits.begin(pool.lease, "step"):
        answer = await node.pools.relay_of(pool).exchange(request)
    return Response(answer, media_type="application/octet-stream")


def pool_of(node: Node, call: Call) -> Pool:
    """The pool that a request names, if it is the caller's to see."""
    pool = node.pools.get(call.segment("id"))
    if not call.sees(pool.lease):
        raise NotFound("no such pool")
    return pool


async def output(node: Node, call: Call) -> WorkerOutput:
    """What a worker has printed so far."""
    index = call.segment("index")
    if not index.isascii() or not index.isdigit() or len(index) > 6:
        raise NotFound(f"no worker {index[:16]!r}")
    return await pool_of(node, call).output(int(index))
