"""Pins for a backend's sandboxes: one supervisor, started when the first is asked for, and again when it was lost."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

from hotbed.guest.frames import Header
from hotbed.runtime.replay.client import Report, SupervisorClient, Ticket
from hotbed.runtime.replay.request import PinRequest


class Pinner:
    """Begins pins. `start` makes a supervisor process and gives the node's end of its channel."""

    def __init__(self, start: Callable[[], Awaitable[socket.socket]]) -> None:
        self._start = start
        self._client: SupervisorClient | None = None
        self._starting = asyncio.Lock()

    async def begin(self, request: PinRequest | None, on_failure: Callable[[str], None]) -> Pinned:
        """A pin, to be used as a context. `on_failure` hears at once when its rollout can no longer be believed.

        Without a request it is to be put on ahead, at level `rng`, for one process.
        """
        client = self._client
        if client is None or client.lost:
            client = await self._fresh()
        return Pinned(client, client.begin(request, on_failure))

    async def _fresh(self) -> SupervisorClient:
        async with self._starting:
            if self._client is None or self._client.lost:
                self._client = SupervisorClient(await self._start(), asyncio.get_running_loop())
            return self._client

    def close(self) -> None:
        """End the supervisor. Idempotent."""
        if self._client is not None:
            self._client.close()


class Pinned:
    """One rollout's pin, for as long as the rollout runs."""

    def __init__(self, client: SupervisorClient, ticket: Ticket) -> None:
        self._client = client
        self._ticket = ticket
        self.ahead = False  # whether a process has it on before there is a seed

    def __enter__(self) -> Pinned:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    @property
    def fds(self) -> tuple[int, ...]:
        """What goes to the sandbox with the request."""
        return () if self.ahead else (self._ticket.channel,)

    @property
    def said(self) -> Header:
        """What the request says of it."""
        return {"ahead": True} if self.ahead else {}

    async def put_on(self) -> None:
        """Wait until a process has it on, ahead of its seed. Raises `SandboxFailed`, and `NotSupported` if none can."""
        await self._client.put_on(self._ticket)
        self.ahead = True

    def seed(self, request: PinRequest) -> None:
        """What one that was put on ahead is pinned by. Raises `SandboxFailed` when the supervisor is gone."""
        self._client.seed(self._ticket, request)

    def sent(self) -> None:
        """The channel is on its way to the sandbox. Idempotent."""
        self._client.announce(self._ticket)

    async def report(self) -> Report:
        """How it stands. Raises `SandboxFailed` if anything was not, or may not have been, pinned."""
        return await self._client.report(self._ticket)

    async def concluded(self, drawn: bytes) -> Report:
        """The same when it is over. What was put on ahead is judged by what it drew first."""
        if self.ahead:
            return self._client.compared(self._ticket, drawn)
        await self._client.wait_ended(self._ticket)
        return await self._client.report(self._ticket)

    def drop(self) -> None:
        """Hear no more of it. Idempotent."""
        self._client.drop(self._ticket)
