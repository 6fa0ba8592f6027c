"""Answers kept by the request that they came for, so that who asks again gets the same: siblings, and later runs.

A request is told by a hash of its method, URL, body, and the headers that choose between answers; never of what the
node adds to it. The same request of one sandbox asked a second time is another: its answer may have changed. Whoever of
several asks first fetches, and the others wait for that. A sealed recording fetches nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

HeaderList = list[tuple[bytes, bytes]]
BODY_LIMIT = 64 << 20
_CHOOSING = (b"accept", b"accept-language", b"authorization", b"content-type", b"range")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer, whole."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def pack(self) -> bytes:
        """As it is kept."""
        head = [self.status, [[name.decode("latin-1"), value.decode("latin-1")] for name, value in self.headers]]
        return json.dumps(head).encode() + b"\n" + self.body


def unpack(data: bytes) -> Reply:
    """A kept one."""
    head, _, body = data.partition(b"\n")
    status, headers = json.loads(head)
    pairs = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers)
    return Reply(status=status, headers=pairs, body=body)


def key_of(method: bytes, url: str, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> str:
    """What a request is known by."""
    chosen = sorted((name.lower(), value) for name, value in headers if name.lower() in _CHOOSING)
    told = [method, url.encode("utf-8", "surrogateescape"), *(part for pair in chosen for part in pair), body]
    whole = b"".join(len(part).to_bytes(8, "big") + part for part in told)
    return hashlib.sha256(whole).hexdigest()


class Recording:
    """Of one rollout or group, for as long as any sandbox of it lives. `keep` is told of each new answer."""

    def __init__(self, keep: Callable[[str, bytes], object]) -> None:
        self._keep = keep
        self._replies: dict[str, asyncio.Future[Reply]] = {}

    def add(self, key: str, reply: Reply) -> None:
        """One that was kept before."""
        known = self._replies[key] = asyncio.get_running_loop().create_future()
        known.set_result(reply)

    async def reply(self, key: str, fetch: Callable[[], Awaitable[Reply]] | None) -> Reply | None:
        """The answer; fetched and kept if there is none yet, or None where nothing may be fetched."""
        while (known := self._replies.get(key)) is not None:
            try:
                return await asyncio.shield(known)
            except _NotFetched:
                continue
        if fetch is None:
            return None
        mine = self._replies[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await fetch()
        except BaseException:  # also when cancelled: whoever waits asks for itself
            del self._replies[key]
            mine.set_exception(_NotFetched())
            mine.exception()
            raise
        mine.set_result(reply)
        self._keep(key, reply.pack())
        return reply


class _NotFetched(Exception):
    """Who asked first got no answer."""


class Turns:
    """How often one sandbox has made each request."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def next(self, key: str) -> str:
        """The key of this time."""
        self._asked[key] += 1
        return f"{key}-{self._asked[key]}"
