"""A bench on which every claim is broken, to see that the attempts notice."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hotbed.errors import Error
from hotbed.runtime.base import ExecOutcome, ExecRequest, OnOutput
from hotbed.runtime.selfcheck.bench import Attempt, Broken


class StubBox:
    """Whatever is run in it, the same comes out."""

    def __init__(self, outcome: ExecOutcome) -> None:
        self._outcome = outcome

    async def exec(self, request: ExecRequest, on_output: OnOutput | None = None) -> ExecOutcome:
        """The one outcome."""
        return self._outcome

    async def open(self, path: str, mode: str) -> tuple[int, int]:
        """Everything is a file here."""
        import os

        return os.open("/dev/null", os.O_RDONLY), 0

    async def dial(self, port: int) -> socket.socket:
        """Every port is open."""
        return socket.socket()

    def is_alive(self) -> bool:
        """Always."""
        return True


class StubBench:
    """Answers every question with what it was given."""

    def __init__(self, answer: Any = None, **outcome: Any) -> None:
        self._answer = answer
        self._outcome = ExecOutcome(**{"status": "ok", "exit_code": 0, **outcome})
        self.backend: Any = None
        self.template: Any = None

    async def answer(self, source: str, **limits: Any) -> Any:
        """The one answer."""
        return self._answer

    async def code(self, source: str, **limits: Any) -> ExecOutcome:
        """The one outcome."""
        return self._outcome

    shell = code

    @asynccontextmanager
    async def box(self, **limits: Any) -> AsyncIterator[StubBox]:
        """A stub."""
        yield StubBox(self._outcome)

    def population(self) -> set[int]:
        """Init, which is uid 0."""
        return {1}

    async def wait_extinct(self, pids: set[int]) -> set[int]:
        """Nothing ever dies."""
        return pids


def notices(attempts: tuple[Attempt, ...], claim: str, bench: StubBench) -> bool:
    """Whether the attempt on a claim says that it was broken."""
    attempt = next(attempt for attempt in attempts if attempt.claim == claim)
    try:
        asyncio.run(attempt.run(bench))  # type: ignore[arg-type]  # a stub
    except (Broken, Error):
        return True
    return False
