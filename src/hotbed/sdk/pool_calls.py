"""The operations on pools as values, before any I/O has happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar, cast

from hotbed.sdk.bodies import json_body, read_json
from hotbed.sdk.calls import ANSWER_TIMEOUT_S, Call
from hotbed.wire import routes
from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.pools import (
    CreatePool,
    EndWorkers,
    EnvDir,
    Episode,
    EpisodesRecorded,
    PoolCreated,
    PoolList,
    PoolRow,
    RecordEpisodes,
    Trouble,
    WorkerOutput,
    WorkersEnded,
    WorkerTrouble,
)
from hotbed.wire.sandboxes import Deleted

T = TypeVar("T")

CREATE_TIMEOUT_S = 900.0  # with requirements to install


def get_env_dir(digest: str) -> Call[EnvDir]:
    """Whether the node holds a directory."""
    return _call(routes.GET_ENV_DIR, EnvDir, digest=digest)


def put_env_dir(digest: str, tar: Iterator[bytes], size: int) -> Call[EnvDir]:
    """Send a directory's tar."""
    route = routes.PUT_ENV_DIR
    return Call(
        method=route.method,
        target=route.url(digest=digest),
        read=partial(_read, EnvDir),
        upload=tar,
        upload_length=size,
    )


def create_pool(request: CreatePool) -> Call[PoolCreated]:
    """Make a pool under the client's lease."""
    route = routes.CREATE_POOL
    return Call(
        method=route.method,
        target=route.url(),
        read=partial(_read, PoolCreated),
        body=json_body(to_wire(request)),
        timeout_s=CREATE_TIMEOUT_S,
        leased=True,
    )


def list_pools() -> Call[tuple[PoolRow, ...]]:
    """Every live pool of the caller."""
    return Call(method="GET", target=routes.LIST_POOLS.url(), read=lambda body: _read(PoolList, body).pools)


def get_pool(pool_id: str) -> Call[PoolRow]:
    """One live pool and its workers."""
    return _call(routes.GET_POOL, PoolRow, id=pool_id)


def delete_pool(pool_id: str) -> Call[Deleted]:
    """End a pool."""
    return _call(routes.DELETE_POOL, Deleted, id=pool_id)


def end_workers(pool_id: str, troubles: Mapping[int, str]) -> Call[WorkersEnded]:
    """End workers, and hear how each ended."""
    route = routes.END_WORKERS
    workers = tuple(WorkerTrouble(index=index, trouble=cast("Trouble", trouble)) for index, trouble in troubles.items())
    return Call(
        method=route.method,
        target=route.url(id=pool_id),
        read=partial(_read, WorkersEnded),
        body=json_body(to_wire(EndWorkers(workers=workers))),
        timeout_s=ANSWER_TIMEOUT_S,
    )


def record_episodes(pool_id: str, episodes: Sequence[Episode]) -> Call[EpisodesRecorded]:
    """Have episodes kept."""
    route = routes.RECORD_EPISODES
    return Call(
        method=route.method,
        target=route.url(id=pool_id),
        read=partial(_read, EpisodesRecorded),
        body=json_body(to_wire(RecordEpisodes(episodes=tuple(episodes)))),
        timeout_s=ANSWER_TIMEOUT_S,
    )


def exchange(pool_id: str, body: bytes, *, timeout_s: float) -> Call[bytes]:
    """Frames to workers through the node, and what they answer."""
    route = routes.EXCHANGE
    return Call(
        method=route.method, target=route.url(id=pool_id), read=bytes, body=body, timeout_s=timeout_s + ANSWER_TIMEOUT_S
    )


def worker_output(pool_id: str, index: int) -> Call[WorkerOutput]:
    """What a worker has printed."""
    return _call(routes.WORKER_OUTPUT, WorkerOutput, id=pool_id, index=str(index))


def _call(route: routes.Route, kind: type[T], **segments: str) -> Call[T]:
    return Call(method=route.method, target=route.url(**segments), read=partial(_read, kind))


def _read(kind: type[T], body: bytes) -> T:
    return from_wire(kind, read_json(body))
