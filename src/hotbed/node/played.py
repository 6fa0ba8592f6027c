"""An episode of the ledger played again: its environment, its seed and its actions, in a pool of one.

The node drives its own worker as a client would, on a thread of its own, and what it sees is recorded as the first time
was. So the two are compared as they are kept, and the second is a line of the ledger as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from hotbed.errors import InvalidRequest, NotFound
from hotbed.node.differences import compare_bytes
from hotbed.node.episodes import entries_of
from hotbed.node.leases import Lease
from hotbed.node.ledger.entry import Entry
from hotbed.node.pool import Pool
from hotbed.node.pools import Pools
from hotbed.pools.contract import PoolOptions
from hotbed.pools.control import Grant, Output, WorkerEnd
from hotbed.pools.plainly import value_of
from hotbed.pools.stopwatch import Span
from hotbed.pools.vector import VectorPool
from hotbed.wire.ledger import Difference
from hotbed.wire.pools import CreatePool, Episode, Trouble, WorkerTrouble

T = TypeVar("T")

_PATIENCE_S = 120.0


async def play_again(
    pools: Pools, row: Mapping[str, Any], request: bytes, shown: bytes, lease: Lease | None
) -> tuple[Entry, list[Difference]]:
    """The line of the second time, and where it differs from the first. Raises `InvalidRequest` if it cannot be had."""
    asked = msgspec.json.decode(request)
    actions = _actions(asked, row)
    try:
        pools.env_dirs.get(asked["env_digest"])
    except NotFound:
        raise InvalidRequest(
            "the directory of its environment is no longer here", hint="a new pool of that directory sends it again"
        ) from None
    made = await pools.create(_pool_of(asked, row), lease)
    pool = pools.get(made.id)
    try:
        if made.template_digest != row["template_digest"]:
            raise InvalidRequest(
                f"its template is {made.template_digest[:12]} now and was {row['template_digest'][:12]} then",
                hint="a replay needs the very template: the interpreter, packages or image have changed since",
            )
        control = Here(pool, asyncio.get_running_loop())
        await asyncio.to_thread(_play, control, pool.request, asked["seed"], actions)
        [entry] = entries_of(pool, control.kept, at=time.time())
    finally:
        await pool.close("played")
    return entry, list(_differences(row, shown, entry))


def _actions(asked: Mapping[str, Any], row: Mapping[str, Any]) -> list[Any]:
    if asked["branched"]:
        raise InvalidRequest("it went on from a copy of another episode, so its seed and actions are not all of it")
    if row["details"]["unkept_steps"]:
        raise InvalidRequest(f"its last {row['details']['unkept_steps']} steps were too large to keep")
    try:
        return list(value_of(asked["actions"]))
    except (ValueError, TypeError, LookupError) as error:
        raise InvalidRequest(f"its actions cannot be read: {error}") from None


def _pool_of(asked: Mapping[str, Any], row: Mapping[str, Any]) -> CreatePool:
    return CreatePool(
        n=1,
        record=True,
        template=row["template"],
        slots=1 if asked["mode"] == "boltz" else None,
        **{name: asked[name] for name in ("env_digest", "mode", "preload", "limits", "egress")},
    )


def _play(control: Here, request: CreatePool, seed: int, actions: Sequence[Any]) -> None:
    """Begin the episode and take its actions, as far as it goes."""
    options = PoolOptions(n=1, mode=request.mode, record=True)
    with VectorPool(options, control, seed=bytes(32), slots=request.slots) as pool:
        pool.reset(seed=[seed])
        over = pool.details[0]["status"] != "ok"
        for action in actions:
            if over:
                return
            over = pool.step([action])[2][0]


def _differences(row: Mapping[str, Any], shown: bytes, entry: Entry) -> Sequence[Difference]:
    found = []
    for name in ("status", "reward"):
        old, new = row[name], getattr(entry, name)
        if old != new:
            found.append(Difference(what=name, recorded=str(old), replayed=str(new)))
    stream = compare_bytes("stdout", shown, entry.stdout)
    return found if stream is None else [*found, stream]


class Here:
    """The `Control` of a pool for a thread of its own node."""

    def __init__(self, pool: Pool, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = pool
        self._loop = loop
        self.kept: list[Episode] = []

    def open(self, indices: Sequence[int]) -> Sequence[Grant]:
        """A fresh worker and its lane for each."""
        return [self._wait(self._grant(index)) for index in indices]

    async def _grant(self, index: int) -> Grant:
        worker = await self._pool.open(index)
        return Grant(index=index, sock=worker.lease(), isolation=worker.held.box.isolation)

    def end(self, troubles: Mapping[int, str]) -> Mapping[int, WorkerEnd]:
        """End these workers; how each ended."""
        asked = [WorkerTrouble(index=index, trouble=cast("Trouble", why)) for index, why in troubles.items()]
        return {
            end.index: WorkerEnd(**{name: getattr(end, name) for name in WorkerEnd.__dataclass_fields__})
            for end in self._wait(self._pool.end(asked))
        }

    def output(self, index: int) -> Output:
        """What a worker has printed so far."""
        said = self._wait(self._pool.output(index))
        return Output(stdout=said.stdout, stderr=said.stderr)

    def waited(self, spans: Sequence[Span]) -> None:
        """Nobody's training waits here."""

    def record(self, episodes: Sequence[Episode]) -> None:
        """Keep them for the comparison."""
        self.kept += episodes

    def close(self) -> None:
        """The pool's maker ends it."""

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_S)
