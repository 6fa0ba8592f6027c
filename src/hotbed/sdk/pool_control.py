"""A pool's workers as its client's machine sees them: lifecycle by HTTP, lanes from the node's Unix socket."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence

from hotbed.errors import Error, NodeUnavailable, NotFound, ProtocolError
from hotbed.guest import frames
from hotbed.pools.branching import Restored, Taken
from hotbed.pools.control import Grant, Output, WorkerEnd
from hotbed.pools.relayed import RelayedLanes
from hotbed.pools.stopwatch import Span
from hotbed.sdk import pool_calls, snapshot_calls
from hotbed.sdk.addresses import Address, dial
from hotbed.sdk.transport import Link
from hotbed.wire.pools import Episode, PoolCreated
from hotbed.wire.snapshots import WorkersRestored

LANES_TIMEOUT_S = 60.0
NODE_ENDED = "the node that it ran on has ended"

Renew = Callable[[], PoolCreated]


class NodeControl:
    """The `Control` of a pool on this machine's node."""

    def __init__(self, link: Link, pool: PoolCreated, renew: Renew | None = None) -> None:
        self._link = link
        self.pool = pool
        self._renew = renew
        self._lanes: frames.Connection | None = None

    def open(self, indices: Sequence[int]) -> Sequence[Grant]:
        """A fresh worker and its lane for each. Raises `NodeUnavailable`, or the node's refusal.

        Where the node ended and there is another, the pool is made there anew: its workers ended with the first.
        """
        try:
            return self._open(indices)
        except (NodeUnavailable, NotFound):
            if self._renew is None or self._is_there():
                raise
        self.pool = self._renew()
        return self._open(indices)

    def _is_there(self) -> bool:
        """Whether there is a node, and it has this pool. Raises `NodeUnavailable` if there is none."""
        try:
            self._link.send(pool_calls.get_pool(self.pool.id))
        except NotFound:
            return False
        return True

    def _open(self, indices: Sequence[int]) -> Sequence[Grant]:
        try:
            connection = self._connection()
            asked = {"pool": self.pool.id, "token": self.pool.token, "workers": list(indices)}
            connection.send(asked)
            deadline_s = time.monotonic() + LANES_TIMEOUT_S
            return [self._grant(connection, deadline_s) for _ in indices]
        except (OSError, EOFError) as reason:
            self._drop()
            raise NodeUnavailable(f"the node hands out no lanes: {reason}", hint="it has ended") from None
        except BaseException:  # answers to come are nobody's any more
            self._drop()
            raise

    def _grant(self, connection: frames.Connection, deadline_s: float) -> Grant:
        connection.sock.settimeout(max(0.001, deadline_s - time.monotonic()))
        header, _, fds = connection.receive()
        if "error" in header:
            wire = header["error"]
            raise Error.from_wire(wire.get("code", ""), wire.get("message", ""), hint=wire.get("hint"))
        if not fds:
            return Grant(index=header["index"], reason=str(header.get("reason")) or "the node gave no reason")
        if len(fds) != 1:
            raise ProtocolError("a lane came with more than one descriptor")
        return Grant(index=header["index"], sock=socket.socket(fileno=fds[0]), isolation=str(header["isolation"]))

    def _connection(self) -> frames.Connection:
        if self._lanes is None:
            if self.pool.lanes is None:
                raise NodeUnavailable("this node hands out no lanes", hint="it listens on no Unix socket")
            self._lanes = frames.Connection(dial(Address(unix_path=self.pool.lanes), LANES_TIMEOUT_S))
        return self._lanes

    def _drop(self) -> None:
        lanes, self._lanes = self._lanes, None
        if lanes is not None:
            lanes.close()

    def waited(self, spans: Sequence[Span]) -> None:
        """Tell the node, which shows it. Nothing depends on it, so a node that is gone is not noticed here."""
        if self._lanes is None:
            return
        try:
            self._lanes.send({"pool": self.pool.id, "token": self.pool.token, "waited": [list(one) for one in spans]})
        except frames.Closed:
            pass  # the next question will say so
        except OSError:
            self._drop()

    def record(self, episodes: Sequence[Episode]) -> None:
        """Have the node keep them in its ledger."""
        self._link.send(pool_calls.record_episodes(self.pool.id, episodes))

    def end(self, troubles: Mapping[int, str]) -> Mapping[int, WorkerEnd]:
        """End these workers; how each ended."""
        try:
            ends = self._link.send(pool_calls.end_workers(self.pool.id, troubles)).workers
        except (NodeUnavailable, NotFound):
            return {index: WorkerEnd(index=index, status="lost", reason=NODE_ENDED) for index in troubles}
        return {
            end.index: WorkerEnd(
                index=end.index,
                status=end.status,
                exit_code=end.exit_code,
                signal=end.signal,
                reason=end.reason,
                stdout=end.stdout,
                stderr=end.stderr,
            )
            for end in ends
        }

    def output(self, index: int) -> Output:
        """What a worker has printed so far."""
        found = self._link.send(pool_calls.worker_output(self.pool.id, index))
        return Output(stdout=found.stdout, stderr=found.stderr)

    def snapshot(self, index: int, *, skip: bool, verify: bool) -> Taken:
        """Take a snapshot of a worker."""
        row = self._link.send(snapshot_calls.take(self.pool.id, index, skip=skip, verify=verify))
        return Taken(id=row.id, size=row.size, skipped=row.skipped)

    def restore(self, snapshot: str, indices: Sequence[int], *, verify: bool) -> Restored:
        """Replace workers by what a snapshot was taken of."""
        return _restored(self._link.send(snapshot_calls.restore(self.pool.id, snapshot, indices, verify=verify)))

    def fork(self, index: int, targets: Sequence[int], *, skip: bool, verify: bool) -> Restored:
        """Replace workers by copies of one."""
        return _restored(self._link.send(snapshot_calls.fork(self.pool.id, index, targets, skip=skip, verify=verify)))

    def free(self, snapshot: str) -> None:
        """Free a snapshot. A node that is gone has freed it already."""
        try:
            self._link.send(snapshot_calls.free(snapshot))
        except Error:
            pass

    def close(self) -> None:
        """End the pool. A node that is gone has ended it already."""
        self._drop()
        try:
            self._link.send(pool_calls.delete_pool(self.pool.id))
        except Error:
            pass


class RelayControl(NodeControl):
    """The `Control` of a pool on a node elsewhere, which keeps the lanes: `lanes` passes frames through it."""

    def __init__(self, link: Link, pool: PoolCreated, renew: Renew | None = None, *, open_timeout_s: float) -> None:
        super().__init__(link, pool, renew)
        self._open_timeout_s = open_timeout_s
        self.lanes = RelayedLanes(self._exchange)

    def _open(self, indices: Sequence[int]) -> Sequence[Grant]:
        """Their lanes stay at the node."""
        return self.lanes.open(indices, self._open_timeout_s)

    def _exchange(self, body: bytes, timeout_s: float) -> bytes:
        return self._link.send(pool_calls.exchange(self.pool.id, body, timeout_s=timeout_s))


def _restored(answer: WorkersRestored) -> Restored:
    return Restored(failed={int(index): reason for index, reason in answer.failed.items()}, skipped=answer.skipped)
