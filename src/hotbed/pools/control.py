"""What a pool's client asks of whoever keeps the workers: fresh lanes, and how a worker ended."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hotbed.pools.stopwatch import Span
from hotbed.wire.pools import Episode


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A fresh worker and its lane, unless the lane stays at the node. With a `reason` there is neither."""

    index: int
    sock: socket.socket | None = None
    isolation: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnd:
    """How a worker ended, with the tails of what env.py printed. `lost`: not by its own doing."""

    index: int
    status: str
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a worker's env.py has printed: head and tail of each stream."""

    stdout: str = ""
    stderr: str = ""


class Control(Protocol):
    """The keeper of the workers. A method raises only when the keeper itself cannot be reached or refuses the whole."""

    def open(self, indices: Sequence[int]) -> Sequence[Grant]:
        """A fresh worker for each index; what was there before is ended."""
        ...

    def end(self, troubles: Mapping[int, str]) -> Mapping[int, WorkerEnd]:
        """End the workers that had these troubles; how each ended.

        One whose lane was `closed` is probably dying: it gets a moment to, so that its own end is what is told.
        """
        ...

    def output(self, index: int) -> Output:
        """What a worker has printed so far."""
        ...

    def waited(self, spans: Sequence[Span]) -> None:
        """How long the client was held up lately (see `stopwatch`). Returns at once; may be lost."""
        ...

    def record(self, episodes: Sequence[Episode]) -> None:
        """Keep episodes that are over. Raises when they could not be."""
        ...

    def close(self) -> None:
        """End every worker. Idempotent."""
        ...
