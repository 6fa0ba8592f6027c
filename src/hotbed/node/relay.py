"""Lanes for clients that are elsewhere: the node holds the workers' sockets and passes whole frames on.

One exchange is one HTTP request: lanes to open, frames to send, and how many answers to wait for from whom. Frames are
not read here beyond their lengths; the client checks what is in them as it does with a lane of its own. What arrives is
held until the client asks for it, one frame a lane: a worker that sends more finds nobody reading, and one that sends
without having been asked has failed.

The body of an exchange is frames (`guest/frames.py`): first {"open", "open_timeout_s", "collect", "want",
"patience_s"}, then {"worker", "timeout_s"} with a lane frame as its body for each request. The answer is {"grants"},
then for each arrival {"worker"} with a lane frame, or {"worker", "trouble", "reason"}.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hotbed.errors import Error, InvalidRequest
from hotbed.guest import frames
from hotbed.guest.environments import lane, values
from hotbed.node.pool import Pool

BODY_LIMIT = 256 << 20
ANSWER_LIMIT = 128 << 20
PATIENCE_LIMIT_S = 30.0
_WORKERS_LIMIT = 4096
_READ_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One exchange, checked."""

    open: tuple[int, ...] = ()
    open_timeout_s: float = 60.0
    collect: tuple[int, ...] = ()
    want: int = 0
    patience_s: float = 0.0
    posts: tuple[tuple[int, float, bytes], ...] = ()


def parse(body: bytes) -> Request:
    """The request in a body. Raises `InvalidRequest`."""
    decoder = frames.Decoder(header_limit=1 << 20, body_limit=values.FRAME_LIMIT + 64)
    decoder.feed(body)
    try:
        found = [frame for frame in iter(decoder.next, None) if frame is not None]
        (head, _), *rest = found
        if decoder.pending():
            raise ValueError("it ends in the middle of a frame")
        return Request(
            open=_workers(head.get("open", [])),
            open_timeout_s=_seconds(head.get("open_timeout_s", 60.0)),
            collect=_workers(head.get("collect", [])),
            want=int(head.get("want", 0)),
            patience_s=min(PATIENCE_LIMIT_S, _seconds(head.get("patience_s", 0.0))),
            posts=tuple((_worker(header["worker"]), _seconds(header["timeout_s"]), data) for header, data in rest),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidRequest(f"that is no exchange: {error}") from None


def _workers(given: Any) -> tuple[int, ...]:
    if type(given) is not list or len(given) > _WORKERS_LIMIT:
        raise ValueError("workers are a list of numbers")
    return tuple(map(_worker, given))


def _worker(given: Any) -> int:
    if type(given) is not int or not 0 <= given < _WORKERS_LIMIT:
        raise ValueError("a worker is a number")
    return given


def _seconds(given: Any) -> float:
    if type(given) not in (int, float) or not 0 <= given <= 24 * 3600:
        raise ValueError("a timeout is seconds")
    return float(given)


@dataclass(slots=True, kw_only=True, eq=False)
class RelayedLane:
    """One worker's socket, its unsent packets, and what it has said."""

    index: int
    sock: socket.socket
    changed: asyncio.Event
    splitter: lane.Splitter = field(default_factory=lane.Splitter)
    unsent: deque[bytes | memoryview] = field(default_factory=deque)
    arrival: tuple[dict[str, Any], bytes] | None = None
    awaiting: int = 1
    deadline_s: float = 0.0
    reading: bool = False

    def listen(self) -> None:
        """Read until there is a frame."""
        if not self.reading and self.arrival is None:
            self.reading = True
            asyncio.get_running_loop().add_reader(self.sock.fileno(), self._read)

    def post(self, frame: bytes, deadline_s: float) -> None:
        """Send a request."""
        self.awaiting += 1
        self.deadline_s = deadline_s
        self.unsent.extend(lane.packets(frame))
        self._write()
        self.listen()

    def take(self) -> tuple[dict[str, Any], bytes] | None:
        """What has arrived, once."""
        arrival, self.arrival = self.arrival, None
        if arrival is not None and "trouble" not in arrival[0]:
            self.listen()
        return arrival

    def fail(self, trouble: str, reason: str) -> None:
        """It is not listened to again."""
        self.quiet()
        self.arrival = ({"worker": self.index, "trouble": trouble, "reason": reason}, b"")
        self.changed.set()

    def quiet(self) -> None:
        """Stop reading and writing."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self.sock.fileno())
        loop.remove_writer(self.sock.fileno())
        self.reading = False

    def close(self) -> None:
        """Let go of it."""
        if self.sock.fileno() >= 0:
            self.quiet()
            self.sock.close()

    def _read(self) -> None:
        try:
            for _ in range(_READ_AT_ONCE):
                packet = self.sock.recv(lane.PACKET)
                if not packet:
                    return self.fail("closed", "its lane was closed")
                frame = self.splitter.take(packet)
                if frame is not None:
                    return self._arrived(frame)
        except BlockingIOError:
            return None
        except ConnectionResetError:
            return None  # what it had said before comes after
        except OSError as error:
            return self.fail("closed", f"its lane broke: {error.strerror}")
        except frames.FrameError as error:
            return self.fail("protocol", str(error))

    def _arrived(self, frame: bytes) -> None:
        if not self.awaiting:
            return self.fail("protocol", "it spoke without being asked")
        self.awaiting -= 1
        self.arrival = ({"worker": self.index}, frame)
        asyncio.get_running_loop().remove_reader(self.sock.fileno())
        self.reading = False
        self.changed.set()

    def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self.unsent:
                sent = self.sock.send(self.unsent[0])
                rest = self.unsent.popleft()[sent:]
                if rest:
                    self.unsent.appendleft(rest)
        except BlockingIOError:
            loop.add_writer(self.sock.fileno(), self._write)
            return
        except OSError:
            self.unsent.clear()  # the read side tells how it ended
        loop.remove_writer(self.sock.fileno())


class Relay:
    """The lanes of one pool that its client has left here."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._lanes: dict[int, RelayedLane] = {}
        self._changed = asyncio.Event()

    def close(self) -> None:
        """Let go of every lane."""
        for one in self._lanes.values():
            one.close()
        self._lanes.clear()

    async def exchange(self, request: Request) -> bytes:
        """Do what one exchange asks for; its answer."""
        self._pool.check_open()
        deadline_s = time.monotonic() + request.open_timeout_s
        grants = await asyncio.gather(*(self._open(index, deadline_s) for index in request.open))
        for index, timeout_s, frame in request.posts:
            if index in self._lanes:
                self._lanes[index].post(frame, time.monotonic() + timeout_s)
        arrivals = await self._collect(request)
        return b"".join((frames.pack({"grants": grants}), *(frames.pack(*arrival) for arrival in arrivals)))

    async def _open(self, index: int, deadline_s: float) -> dict[str, Any]:
        try:
            worker = await self._pool.open(index)
        except Error as error:
            return {"index": index, "reason": str(error)}
        old = self._lanes.pop(index, None)
        if old is not None:
            old.close()
        sock = worker.lease()
        sock.setblocking(False)
        one = self._lanes[index] = RelayedLane(index=index, sock=sock, changed=self._changed)
        one.deadline_s = deadline_s
        one.listen()
        return {"index": index, "isolation": worker.held.box.isolation}

    async def _collect(self, request: Request) -> list[tuple[dict[str, Any], bytes]]:
        """The first arrivals of those asked for; fewer when the client's patience, or room, runs out."""
        waiting = [self._lanes[index] for index in request.collect if index in self._lanes]
        until_s, taken, size = time.monotonic() + request.patience_s, [], 0
        while True:
            self._changed.clear()
            for arrival in self._arrivals(waiting):
                taken.append(arrival)
                size += len(arrival[1])
                if len(taken) >= request.want or size > ANSWER_LIMIT:
                    return taken
            now = time.monotonic()
            if not waiting or now >= until_s:
                return taken
            await self._wait(min(until_s, *(one.deadline_s for one in waiting)) - now)

    def _arrivals(self, waiting: list[RelayedLane]) -> Iterator[tuple[dict[str, Any], bytes]]:
        for one in tuple(waiting):
            if one.arrival is None and one.deadline_s <= time.monotonic():
                one.fail("timeout", "it did not answer in time")
            arrival = one.take()
            if arrival is not None:
                waiting.remove(one)
                yield arrival

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._changed.wait(), max(0.0, seconds))
        except asyncio.TimeoutError:
            pass
