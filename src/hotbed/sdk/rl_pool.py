"""`RLPool`: n environments of one directory, in sandboxes of a node."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import IO

from hotbed.errors import InvalidRequest, NotFound
from hotbed.pools import archive
from hotbed.pools.branching import BranchingPool
from hotbed.pools.contract import Autoreset, Mode, PoolOptions, Recover
from hotbed.pools.lanes import Lanes
from hotbed.pools.relayed import RelayedLanes
from hotbed.pools.seeds import PoolSeed, pool_seed
from hotbed.sdk import pool_calls
from hotbed.sdk.client import AnyClient
from hotbed.sdk.connect import link_of
from hotbed.sdk.pool_control import NodeControl, RelayControl, Renew
from hotbed.sdk.programs import EgressPolicy
from hotbed.sdk.transport import Link
from hotbed.wire.checks import egress_object
from hotbed.wire.pools import CreatePool, PoolCreated

_CHUNK = 1 << 18


class RLPool(BranchingPool):
    """`n` workers, each a sandbox of `template` with the environment of `env_dir`.

    The directory is sent once, appears read-only at /env, and its env.py hands its functions to `serve`. With
    mode="boltz" the environment is loaded once and each episode is a fork of it, on the node's Boltz slots, of which
    the pool takes `slots` (all that are free). A node without slots refuses; there is no fallback. With `preload` the
    environment is loaded once in default mode too, so what it builds while loading is shared by all workers and copies.
    With `record` each episode is in the node's ledger once it is over, with its seed, its actions and what they showed.
    """

    def __init__(
        self,
        env_dir: str | os.PathLike[str],
        n: int = 1,
        mode: Mode = "default",
        *,
        template: str = "python",
        seed: PoolSeed = None,
        step_timeout: float = 60.0,
        reset_timeout: float = 60.0,
        limits: Mapping[str, float] | None = None,
        egress: EgressPolicy | None = None,
        autoreset: Autoreset = "disabled",
        recover: Recover = "none",
        slots: int | None = None,
        preload: bool = False,
        record: bool = False,
        label: str | None = None,
        client: AnyClient | None = None,
    ) -> None:
        options = PoolOptions(
            n=n,
            mode=mode,
            autoreset=autoreset,
            recover=recover,
            record=record,
            step_timeout_s=step_timeout,
            reset_timeout_s=reset_timeout,
        )
        _check_combination(mode, slots)
        base, link = pool_seed(seed), link_of(client)
        wanted = CreatePool(
            env_digest=send_env_dir(link, env_dir),
            n=n,
            mode=mode,
            template=template,
            limits=limits,
            seed=base.hex(),
            slots=slots,
            preload=preload,
            record=record,
            label=label,
            egress=egress_object(egress),
        )
        made = link.send(pool_calls.create_pool(wanted))
        control, lanes = _ways(link, made, partial(_make_again, link, env_dir, wanted, made.slots), reset_timeout)
        super().__init__(options, control, seed=base, slots=made.slots, lanes=lanes)
        self.mode, self.slots, self._node = mode, made.slots, control

    @property
    def id(self) -> str:
        """How its node names it; another name where the node ended and the pool was made again."""
        return self._node.pool.id

    @property
    def isolation(self) -> str:
        """The level that its node keeps."""
        return self._node.pool.isolation

    def __repr__(self) -> str:
        return f"<RLPool {self.id} of {self.n} workers, mode={self.mode!r}>"


def _check_combination(mode: str, slots: int | None) -> None:
    if slots is not None and mode != "boltz":
        raise InvalidRequest("slots are of boltz mode", hint='RLPool(..., mode="boltz", slots=K)')


def _make_again(link: Link, env_dir: str | os.PathLike[str], wanted: CreatePool, slots: int | None) -> PoolCreated:
    """The same pool on a node that does not know it."""
    if send_env_dir(link, env_dir) != wanted.env_digest:
        raise InvalidRequest(f"{env_dir} has changed since the pool was made", hint="make another RLPool")
    return link.send(pool_calls.create_pool(replace(wanted, slots=slots)))


def _ways(
    link: Link, made: PoolCreated, renew: Renew, open_timeout_s: float
) -> tuple[NodeControl, Lanes | RelayedLanes]:
    """How to reach the workers: their own sockets from a node on this machine, through the node from any other."""
    if link.address.unix_path is not None and made.lanes is not None and os.path.exists(made.lanes):
        return NodeControl(link, made, renew), Lanes()
    control = RelayControl(link, made, renew, open_timeout_s=open_timeout_s)
    return control, control.lanes


def send_env_dir(link: Link, env_dir: str | os.PathLike[str]) -> str:
    """See to it that the node holds a directory; its digest. Raises `BadEnvDir`."""
    packed = archive.pack(env_dir)
    with packed.tar as tar:
        try:
            link.send(pool_calls.get_env_dir(packed.digest))
        except NotFound:
            link.send(pool_calls.put_env_dir(packed.digest, _chunks(tar), packed.size))
    return packed.digest


def _chunks(tar: IO[bytes]) -> Iterator[bytes]:
    while chunk := tar.read(_CHUNK):
        yield chunk
