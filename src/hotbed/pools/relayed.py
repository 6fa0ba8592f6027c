"""The lanes of a pool on another machine: the same promises as `Lanes`, over exchanges with the node.

Requests are kept until somebody waits, and go out with the waiting: a step of any number of workers is one round trip.
What comes back is checked here as if it had come from the workers themselves, since it has.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, get_args

from hotbed.errors import NodeUnavailable, NotFound, ProtocolError
from hotbed.guest import frames
from hotbed.guest.environments import lane, values
from hotbed.pools.control import Grant
from hotbed.pools.lanes import Arrival, Trouble

PATIENCE_S = 20.0
SEND_FROM = 32 << 20

Exchange = Callable[[bytes, float], bytes]


class RelayedLanes:
    """Every lane of a pool, at the node."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._deadlines: dict[int, float] = {}
        self._arrivals: dict[int, deque[Arrival]] = {}
        self._posts: list[tuple[int, float, bytes]] = []

    def __contains__(self, index: int) -> bool:
        return index in self._deadlines

    def open(self, indices: Sequence[int], timeout_s: float) -> Sequence[Grant]:
        """Fresh workers at the node."""
        head = {"open": list(indices), "open_timeout_s": timeout_s}
        grants = self._ask(head)
        return [
            Grant(index=one["index"], isolation=str(one.get("isolation", "")), reason=str(one.get("reason", "")))
            for one in grants
        ]

    def attach(self, index: int, sock: socket.socket | None, *, deadline_s: float | None) -> None:
        """Take note of a worker; of a fresh one the first word is awaited until the deadline."""
        assert sock is None, "the node keeps the sockets"
        self.detach(index)
        self._deadlines[index] = deadline_s if deadline_s is not None else 0.0
        self._arrivals[index] = deque()

    def detach(self, index: int) -> None:
        """Forget a worker. Idempotent."""
        self._deadlines.pop(index, None)
        self._arrivals.pop(index, None)
        self._posts = [post for post in self._posts if post[0] != index]

    def close(self) -> None:
        """Forget all. Idempotent."""
        for index in tuple(self._deadlines):
            self.detach(index)

    def post(self, index: int, frame: bytes, *, deadline_s: float) -> None:
        """Keep a request, whose answer is awaited until the deadline; many large ones are sent at once."""
        self._deadlines[index] = deadline_s
        self._posts.append((index, deadline_s, frame))
        if sum(len(post[2]) for post in self._posts) > SEND_FROM:
            self._pass_on({})

    def collect(self, indices: Collection[int], want: int) -> list[Arrival]:
        """Wait until `want` of these have an arrival each, and return those; the others keep theirs."""
        waiting = [index for index in indices if index in self._deadlines]
        taken: list[Arrival] = []
        while True:
            for index in tuple(waiting):
                if len(taken) < want and self._arrivals[index]:
                    taken.append(self._arrivals[index].popleft())
                    waiting.remove(index)
            if not waiting or len(taken) >= want:
                if self._posts:
                    self._pass_on({})
                return taken
            patience_s = min(
                PATIENCE_S, max(0.0, max(self._deadlines[index] for index in waiting) - time.perf_counter())
            )
            self._pass_on({"collect": waiting, "want": want - len(taken), "patience_s": patience_s + 1.0})

    def _pass_on(self, head: dict[str, Any]) -> None:
        """An exchange. Where the node is gone, or has no such pool, every lane to it has closed."""
        try:
            self._ask(head)
        except (NodeUnavailable, NotFound) as error:
            now = time.perf_counter()
            for index, arrivals in self._arrivals.items():
                arrivals.append(Arrival(index, now, None, "closed", error.message))

    def _ask(self, head: dict[str, Any]) -> list[dict[str, Any]]:
        """One exchange. What arrived is kept; the grants are returned."""
        now, posts = time.perf_counter(), self._posts
        self._posts = []
        asked = [frames.pack(head)]
        for index, deadline_s, frame in posts:
            asked.append(frames.pack({"worker": index, "timeout_s": max(0.001, deadline_s - now)}, frame))
        answer = self._exchange(b"".join(asked), float(head.get("patience_s", head.get("open_timeout_s", 0.0))))
        decoder = frames.Decoder(header_limit=16 << 20, body_limit=values.FRAME_LIMIT + 64)
        decoder.feed(answer)
        first = decoder.next()
        if first is None or type(first[0].get("grants")) is not list:
            raise ProtocolError("the node answered an exchange with something else")
        while (found := decoder.next()) is not None:
            self._keep(*found)
        grants: list[dict[str, Any]] = first[0]["grants"]
        return grants

    def _keep(self, header: frames.Header, frame: bytes) -> None:
        index, now = header.get("worker"), time.perf_counter()
        if type(index) is not int or index not in self._arrivals:
            return
        trouble = header.get("trouble")
        if trouble in get_args(Trouble):
            self._arrivals[index].append(Arrival(index, now, None, trouble, str(header.get("reason", ""))))
            return
        try:
            self._arrivals[index].append(Arrival(index, now, lane.Inbox().take(frame) or {}))
        except frames.FrameError as error:
            self._arrivals[index].append(Arrival(index, now, None, "protocol", str(error)))
