"""The steps of an exchange: what its generator yields and a driver performs.

Plain classes rather than dataclasses: one of each is made on every call, and `import hotbed` pays for each of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, TypeVar

from hotbed.sdk.calls import Sink

T = TypeVar("T")


class Open:
    """Get a connection, a fresh one if asked; gives `Opened`."""

    __slots__ = ("fresh", "leased", "timeout_s")

    def __init__(self, *, fresh: bool, leased: bool, timeout_s: float) -> None:
        self.fresh = fresh
        self.leased = leased
        self.timeout_s = timeout_s


class Opened:
    """A connection is there. `headers` are the lines that every request to this node carries."""

    __slots__ = ("reused", "headers", "prefix", "remote")

    def __init__(self, *, reused: bool, headers: bytes, prefix: str = "", remote: bool = False) -> None:
        self.reused = reused
        self.headers = headers
        self.prefix = prefix
        self.remote = remote


class Write:
    """Send all of it."""

    __slots__ = ("data", "timeout_s")

    def __init__(self, data: bytes, timeout_s: float) -> None:
        self.data = data
        self.timeout_s = timeout_s


class Read:
    """Receive; gives bytes, b"" at the end of the stream."""

    __slots__ = ("size", "timeout_s")

    def __init__(self, size: int, timeout_s: float) -> None:
        self.size = size
        self.timeout_s = timeout_s


class Finish:
    """The connection is done with: keep it, or close it."""

    __slots__ = ("reusable",)

    def __init__(self, *, reusable: bool) -> None:
        self.reusable = reusable


class Pull:
    """Next piece of an upload; gives bytes, or None when there is no more. Its failure is the caller's."""

    __slots__ = ("source",)

    def __init__(self, source: Iterator[bytes]) -> None:
        self.source = source


class Push:
    """Hand a piece of a download on. Its failure is the caller's."""

    __slots__ = ("sink", "data")

    def __init__(self, sink: Sink, data: bytes) -> None:
        self.sink = sink
        self.data = data


class Pause:
    """Wait."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Revive:
    """Bring a local node back; gives whether there is one now."""

    __slots__ = ()


Step = Open | Write | Read | Finish | Pull | Push | Pause | Revive
Steps = Generator[Step, Any, T]
