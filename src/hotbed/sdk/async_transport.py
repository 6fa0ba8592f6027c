"""The asyncio driver of an exchange: the same steps as the blocking one, on the same kept sockets.

Sockets are driven by the loop's own `sock_*` operations rather than by streams: a kept connection then belongs to no
loop, so that a client works under one `asyncio.run` after another. TLS needs more than a plain socket; those calls run
the blocking driver in a thread.
"""

from __future__ import annotations

import asyncio
import io
import socket
import sys
import weakref
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from hotbed.errors import Error
from hotbed.sdk.addresses import Address, dial
from hotbed.sdk.calls import Call
from hotbed.sdk.exchange import exchange
from hotbed.sdk.steps import Finish, Open, Opened, Pause, Pull, Push, Read, Revive, Step, Write

if TYPE_CHECKING:
    from hotbed.sdk.leases import Lease
    from hotbed.sdk.transport import Link

T = TypeVar("T")

CONNECTIONS_PER_LOOP = 512  # a trainer may start thousands of tasks, and most processes may open 1024 files


class AsyncDriver:
    """Performs exchanges for one link, on whichever loop is running."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._slots: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            weakref.WeakKeyDictionary()
        )

    async def perform(self, call: Call[T]) -> T:
        """Make a call and wait for its answer."""
        if self._link.address.tls:
            return await asyncio.to_thread(self._link.send, call)
        async with self._slots_of(asyncio.get_running_loop()):
            return await _perform(self._link, call)

    def _slots_of(self, loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
        slots = self._slots.get(loop)
        if slots is None:
            slots = self._slots[loop] = asyncio.Semaphore(CONNECTIONS_PER_LOOP)
        return slots


async def _perform(link: Link, call: Call[T]) -> T:
    run = _Run(link)
    steps = exchange(call)
    try:
        step = next(steps)
        while True:
            try:
                answer = await run.perform(step)
            except (OSError, Error) as failure:
                if isinstance(step, (Pull, Push)):
                    raise
                step = steps.throw(failure)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        run.drop()


class _Run:
    """Performs the steps of one exchange."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._lease: Lease | None = None
        self._socket: socket.socket | None = None

    async def perform(self, step: Step) -> Any:
        """Do one step and give what it asks for."""
        if isinstance(step, Write):
            return await _within(step.timeout_s, self._loop.sock_sendall(self._connection, step.data))
        if isinstance(step, Read):
            return await _within(step.timeout_s, self._loop.sock_recv(self._connection, step.size))
        if isinstance(step, Open):
            return await self._open(step)
        if isinstance(step, Finish):
            return self._finish(reusable=step.reusable)
        return await self._perform_rare(step)

    async def _perform_rare(self, step: Pull | Push | Pause | Revive) -> Any:
        if isinstance(step, Pull):
            return await asyncio.to_thread(next, step.source, None)
        if isinstance(step, Push):
            return await self._push(step)
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        return await asyncio.to_thread(self._link.revive, self._lease)

    async def _push(self, step: Push) -> None:
        """Disks block; memory and callbacks belong on the loop."""
        if isinstance(step.sink, io.IOBase) and not isinstance(step.sink, io.BytesIO):
            await asyncio.to_thread(step.sink.write, step.data)
        else:
            step.sink.write(step.data)

    @property
    def _connection(self) -> socket.socket:
        assert self._socket is not None, "an exchange opens before it reads or writes"
        return self._socket

    async def _open(self, step: Open) -> Opened:
        self.drop()
        link = self._link
        self._lease = link.lease
        if link.needs_lease(leased=step.leased):
            headers = await asyncio.to_thread(link.headers, leased=step.leased)
        else:
            headers = link.headers(leased=step.leased)
        self._lease = link.lease
        self._socket = None if step.fresh else link.pool.take()
        reused = self._socket is not None
        if self._socket is None:
            self._socket = await dialled(link.address, step.timeout_s)
        self._socket.setblocking(False)
        remote = link.address.host is not None
        return Opened(reused=reused, headers=headers, prefix=link.address.prefix, remote=remote)

    def _finish(self, *, reusable: bool) -> None:
        connection, self._socket = self._connection, None
        if reusable and not self._link.closed:
            self._link.pool.give(connection)
        else:
            connection.close()

    def drop(self) -> None:
        """Close the connection if the exchange ended in the middle."""
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()


async def dialled(address: Address, timeout_s: float) -> socket.socket:
    """A connected socket. Raises OSError.

    asyncio's own way would take a Unix socket whose queue is full for one that is being connected (man 7 unix).
    """
    if address.unix_path is not None:
        try:
            return dial(address, 0)
        except BlockingIOError:
            pass  # the node's queue of new connections is full
    return await asyncio.to_thread(dial, address, timeout_s)  # resolving names blocks too


async def _within(timeout_s: float, work: Awaitable[T]) -> T:
    """Await, for so long. Raises TimeoutError.

    CAVEAT: `asyncio.wait_for` before Python 3.12 swallows a cancellation that arrives in the instant the work is done
    (python/cpython#86296): the call would go on to wait for an answer that nobody wants.
    """
    if sys.version_info >= (3, 11):
        async with asyncio.timeout(timeout_s):
            return await work
    return await _until_expired(timeout_s, work)


async def _until_expired(timeout_s: float, work: Awaitable[T]) -> T:
    """The same for Python 3.10, which has no `asyncio.timeout`."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    expired: list[bool] = []

    def expire() -> None:
        expired.append(True)
        task.cancel()

    timer = asyncio.get_running_loop().call_later(timeout_s, expire)
    try:
        return await work
    except asyncio.CancelledError:
        if expired:
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()
