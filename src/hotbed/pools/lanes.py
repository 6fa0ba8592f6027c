"""The client's end of every lane of a pool: frames out, whatever order they come back in, deadlines on all of it.

One epoll set, no threads. `post` sends at once what the socket takes; the rest goes out while `collect` waits, which
returns when enough of the lanes it was asked about have an arrival: a header, or the way in which the lane failed. An
arrival of a lane that nobody waits for is kept for when somebody does.

The other end is not trusted. A lane that speaks without being asked, sends more than one answer, an oversized frame or
no frame at all has *failed*, and is not listened to again. So has one that is silent past its deadline, however busily
it sends meanwhile.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections import deque
from collections.abc import Collection
from typing import Any, Literal, NamedTuple

from hotbed.guest import frames
from hotbed.guest.environments import lane

_READS_AT_ONCE = 16

Trouble = Literal["closed", "timeout", "protocol"]


class Arrival(NamedTuple):
    """What came of a lane: a header, or its trouble. `at_s` is on the clock of `time.perf_counter`."""

    worker: int
    at_s: float
    header: dict[str, Any] | None = None
    trouble: Trouble | None = None
    reason: str = ""


class Lane:
    """One worker's socket and what is under way on it."""

    __slots__ = ("arrivals", "awaiting", "deadline_s", "inbox", "index", "outbox", "sock")

    def __init__(self, index: int, sock: socket.socket) -> None:
        self.index = index
        self.sock = sock
        self.inbox = lane.Inbox()
        self.outbox: deque[bytes | memoryview] = deque()
        self.awaiting = 0
        self.deadline_s = 0.0
        self.arrivals: deque[Arrival] = deque()


class Lanes:
    """The lanes of one pool, by worker."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._pid = os.getpid()
        self._lanes: dict[int, Lane] = {}
        self._by_fd: dict[int, Lane] = {}

    def __contains__(self, index: int) -> bool:
        return index in self._lanes

    def attach(self, index: int, sock: socket.socket | None, *, deadline_s: float | None) -> None:
        """Take a worker's lane; of a fresh one the first word is awaited until the deadline."""
        assert sock is not None, "these lanes are sockets"
        self.detach(index)
        sock.setblocking(False)
        one = Lane(index, sock)
        if deadline_s is not None:
            one.awaiting, one.deadline_s = 1, deadline_s
        self._lanes[index] = self._by_fd[sock.fileno()] = one
        self._epoll.register(sock.fileno(), select.EPOLLIN)

    def detach(self, index: int) -> None:
        """Let go of a lane. Idempotent."""
        one = self._lanes.pop(index, None)
        if one is not None:
            self._silence(one)
            one.sock.close()

    def close(self) -> None:
        """Let go of all. Idempotent."""
        for index in tuple(self._lanes):
            self.detach(index)
        self._epoll.close()

    def post(self, index: int, frame: bytes, *, deadline_s: float) -> None:
        """Send a request, whose answer is awaited until the deadline."""
        one = self._lanes[index]
        one.awaiting += 1
        one.deadline_s = deadline_s
        if len(frame) <= lane.PACKET and not one.outbox:
            try:
                one.sock.send(frame)
                return
            except OSError:  # full, or closed at the other end: the general way tells
                pass
        one.outbox.extend(lane.packets(frame))
        self._flush(one)

    def collect(self, indices: Collection[int], want: int) -> list[Arrival]:
        """Wait until `want` of these lanes have an arrival each, and return those; the others keep theirs."""
        waiting = {index for index in indices if index in self._lanes}
        taken: list[Arrival] = []
        for index in tuple(waiting):
            self._take(index, waiting, taken)
        try:
            self._wait(waiting, taken, want)
        except BaseException:  # interrupted: whoever asks again gets them
            for arrival in taken:
                self._lanes[arrival.worker].arrivals.appendleft(arrival)
            raise
        return taken

    def _wait(self, waiting: set[int], taken: list[Arrival], want: int) -> None:
        next_deadline = 0.0
        while waiting and len(taken) < want:
            now = time.perf_counter()
            if now >= next_deadline:
                next_deadline = self._expire(waiting, now)
            touched = self._poll(max(0.0, next_deadline - now)) if next_deadline > now else list(waiting)
            for index in touched:
                if len(taken) < want:
                    self._take(index, waiting, taken)

    def _take(self, index: int, waiting: set[int], taken: list[Arrival]) -> None:
        one = self._lanes.get(index)
        if one is not None and one.arrivals and index in waiting:
            taken.append(one.arrivals.popleft())
            waiting.discard(index)

    def _expire(self, waiting: set[int], now: float) -> float:
        """Fail the lanes that are past their deadline; the next deadline of the others (`now` if any has failed)."""
        late = [index for index in waiting if self._lanes[index].deadline_s <= now]
        for index in late:
            self._fail(self._lanes[index], "timeout", "it did not answer in time")
        return now if late else min(self._lanes[index].deadline_s for index in waiting)

    def _poll(self, timeout_s: float) -> list[int]:
        """Move bytes; the lanes that have an arrival now."""
        touched = []
        for fd, mask in self._epoll.poll(timeout_s):
            one = self._by_fd.get(fd)
            if one is None:
                continue
            if mask & select.EPOLLOUT:
                self._flush(one)
            if mask & ~select.EPOLLOUT:
                self._read(one)
            if one.arrivals:
                touched.append(one.index)
        return touched

    def _read(self, one: Lane) -> None:
        try:
            for _ in range(_READS_AT_ONCE):
                packet = _receive(one.sock)
                if not packet:
                    return self._fail(one, "closed", "its lane was closed")
                header = one.inbox.take(packet)
                if header is not None:
                    return self._arrived(one, header)
        except BlockingIOError:
            return None
        except OSError as error:
            return self._fail(one, "closed", f"its lane broke: {error.strerror}")
        except frames.FrameError as error:
            return self._fail(one, "protocol", str(error))

    def _arrived(self, one: Lane, header: dict[str, Any]) -> None:
        if not one.awaiting:
            return self._fail(one, "protocol", "it spoke without being asked")
        one.awaiting -= 1
        one.arrivals.append(Arrival(one.index, time.perf_counter(), header))

    def _fail(self, one: Lane, trouble: Trouble, reason: str) -> None:
        self._silence(one)
        one.arrivals.append(Arrival(one.index, time.perf_counter(), None, trouble, reason))

    def _silence(self, one: Lane) -> None:
        ours = self._pid == os.getpid()  # an epoll set is shared with a forked child, which must not touch it
        if self._by_fd.pop(one.sock.fileno(), None) is not None and ours:
            self._epoll.unregister(one.sock.fileno())

    def _flush(self, one: Lane) -> None:
        try:
            while one.outbox:
                sent = one.sock.send(one.outbox[0])
                rest = one.outbox.popleft()[sent:]
                if rest:  # a sequenced packet goes out whole; a stream may take a part
                    one.outbox.appendleft(rest)
        except BlockingIOError:
            pass
        except OSError:
            one.outbox.clear()  # the read side tells how it ended
        mask = select.EPOLLIN | (select.EPOLLOUT if one.outbox else 0)
        if one.sock.fileno() in self._by_fd:
            self._epoll.modify(one.sock.fileno(), mask)


def _receive(sock: socket.socket) -> bytes:
    """The next packet. An end that closes with requests unread resets us first; what it had said comes after."""
    try:
        return sock.recv(lane.PACKET)
    except ConnectionResetError:
        return sock.recv(lane.PACKET)
