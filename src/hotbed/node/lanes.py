"""Handing lanes to clients on the same machine: a Unix socket beside the node's own, and descriptors on it.

A client that knows a pool's token names the workers it wants. For each the node answers one frame: with the lane's
descriptor, or with the reason why there is none. It answers as the workers come to be, in no particular order, and goes
on doing so on one connection for as long as the client keeps it.

    client -> {"pool", "token", "workers": [index...]}
    node   -> {"index", "generation", "isolation"} + descriptor, or {"index", "reason"}; for each
           -> {"error": the error's wire form} instead of all of these, when the request itself is refused

On the same connection a client tells how long it was held up by the pool, which is not answered (`pools/stopwatch.py`):

    client -> {"pool", "token", "waited": [[seconds since it began, since it ended, waited, how often]...]}
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

from hotbed.errors import Error, InvalidRequest
from hotbed.guest.frames import Header
from hotbed.node.nursery import Nursery
from hotbed.node.pool import Pool
from hotbed.node.pools import Pools
from hotbed.node.waits import Waits
from hotbed.runtime.link import Link, close_all

BACKLOG = 128
CONNECTIONS = 1024


class LaneServer:
    """Listens until it is closed."""

    def __init__(self, pools: Pools, nursery: Nursery, waits: Waits | None = None) -> None:
        self._waits = waits or Waits()
        self._pools = pools
        self._nursery = nursery
        self._connections: set[LaneConnection] = set()
        self._sock: socket.socket | None = None

    def listen(self, path: Path) -> None:
        """Begin to listen at a path that this node owns. Only this user can connect. Raises `InvalidRequest`."""
        fresh = path.with_name(f"{path.name}.new")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            fresh.unlink(missing_ok=True)
            listener.setblocking(False)
            listener.bind(str(fresh))
            os.chmod(fresh, 0o600)
            listener.listen(BACKLOG)
            fresh.rename(path)
        except OSError as error:
            listener.close()
            raise InvalidRequest(f"cannot listen on {path}: {error}", hint="choose another --socket") from None
        self._sock = listener
        asyncio.get_running_loop().add_reader(listener.fileno(), self._accept)
        self._pools.lanes_path = str(path)

    def close(self) -> None:
        """Stop listening and end every connection. Idempotent."""
        if self._sock is None:
            return
        asyncio.get_running_loop().remove_reader(self._sock.fileno())
        self._sock.close()
        self._sock = None
        Path(self._pools.lanes_path or "").unlink(missing_ok=True)
        for connection in tuple(self._connections):
            connection.close()

    def _accept(self) -> None:
        assert self._sock is not None
        try:
            accepted, _ = self._sock.accept()
        except OSError:  # whoever connected is gone again, or there is no descriptor left
            return
        if len(self._connections) >= CONNECTIONS:
            accepted.close()
            return
        on_end = self._connections.discard
        self._connections.add(LaneConnection(accepted, self._pools, self._nursery, on_end, waits=self._waits))


class LaneConnection:
    """One client, asking for lanes."""

    def __init__(
        self,
        sock: socket.socket,
        pools: Pools,
        nursery: Nursery,
        on_end: Callable[[LaneConnection], None],
        *,
        waits: Waits,
    ) -> None:
        self._waits = waits
        self._pools = pools
        self._nursery = nursery
        self._link = Link(sock, body_limit=0, on_frame=self._on_frame, on_end=lambda _: on_end(self))

    def close(self) -> None:
        """End it."""
        self._link.end("the node is closing")

    def _on_frame(self, header: Header, _body: bytes, fds: list[int]) -> None:
        close_all(fds)
        if "waited" in header:
            self._waited(header)
            return
        try:
            pool, indices = self._request(header)
        except Error as error:
            self._link.post({"error": error.to_wire()})
            return
        for index in indices:
            self._nursery.start(self._hand_over(pool, index), name=f"lane-{pool.id}-{index}")

    def _waited(self, header: Header) -> None:
        """Note it. What is wrong with it is not answered: the client reads nothing but what it asked for."""
        try:
            pool = self._pools.get_with(str(header.get("pool")), str(header.get("token")))
        except Error:
            return
        self._waits.note_pool(pool.id, pool.lease, header["waited"])

    def _request(self, header: Header) -> tuple[Pool, list[int]]:
        pool_id, token, indices = header.get("pool"), header.get("token"), header.get("workers")
        if type(pool_id) is not str or type(token) is not str or type(indices) is not list:
            raise InvalidRequest("a request for lanes names a pool, its token and workers")
        pool = self._pools.get_with(pool_id, token)
        if any(type(i) is not int or not 0 <= i < pool.request.n for i in indices) or len(set(indices)) < len(indices):
            raise InvalidRequest(f"workers are different numbers from 0 to {pool.request.n - 1}")
        return pool, indices

    async def _hand_over(self, pool: Pool, index: int) -> None:
        try:
            worker = await pool.open(index)
        except Error as error:
            self._link.post({"index": index, "reason": str(error)})
            return
        if not self._link.is_open():
            return
        lane = worker.lease()
        try:
            about = {"index": index, "generation": worker.generation, "isolation": worker.held.box.isolation}
            sent = self._link.post(about, fds=(lane.fileno(),))
            if sent is not None:
                await sent
        finally:
            lane.close()
