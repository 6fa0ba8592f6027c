"""Processes, jobs and ports of a sandbox, for asyncio. The twin of `sandbox_talk.py`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hotbed.sdk import job_calls
from hotbed.sdk.living import AsyncLivingSandbox
from hotbed.sdk.programs import Files, Text, process_request
from hotbed.wire.tunnels import ConnectUrlRequest, Protocol

if TYPE_CHECKING:
    from hotbed.sdk.async_jobs import AsyncJob
    from hotbed.sdk.async_process import AsyncProcess
    from hotbed.sdk.tunnels import AsyncPortForward

# What these bring with them (asyncio, threads, sockets of their own) is not for those who do not use it.


class AsyncSandboxTalk(AsyncLivingSandbox):
    """What an `AsyncSandbox` can do beside running one thing and waiting for it."""

    async def process(
        self,
        code: Text | None = None,
        *,
        command: Text | None = None,
        commands: Sequence[Sequence[str]] | None = None,
        args: Sequence[str] = (),
        files: Files | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout_seconds: float | None = None,
        terminal: tuple[int, int] | None = None,
    ) -> AsyncProcess:
        """Start a program and talk to it. `terminal` gives it one of so many rows and columns; it cannot be pinned.

        Without `timeout_seconds` it may run for a day.
        """
        from hotbed.sdk.async_process import AsyncProcess

        request = process_request(
            code=code,
            command=command,
            commands=commands,
            args=args,
            files=files,
            env=env,
            cwd=cwd,
            timeout_seconds=timeout_seconds,
            terminal=terminal,
        )
        link = await self._live()
        return await AsyncProcess._start(link, self._plan.live_id(), request)

    async def start_job(
        self,
        code: Text | None = None,
        *,
        command: Text | None = None,
        commands: Sequence[Sequence[str]] | None = None,
        args: Sequence[str] = (),
        files: Files | None = None,
        stdin: Text | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout_seconds: float | None = None,
    ) -> AsyncJob:
        """Run one thing in the background. It goes on when this client is gone, and ends with the sandbox."""
        from hotbed.sdk.async_jobs import AsyncJob

        request = process_request(
            code=code,
            command=command,
            commands=commands,
            args=args,
            files=files,
            stdin=stdin,
            env=env,
            cwd=cwd,
            timeout_seconds=timeout_seconds,
        )
        link = await self._live()
        row = await link.asend(job_calls.start_job(self._plan.live_id(), request))
        return AsyncJob(link, self._plan.live_id(), row.id)

    async def jobs(self) -> tuple[AsyncJob, ...]:
        """The jobs that the node remembers, oldest first."""
        from hotbed.sdk.async_jobs import AsyncJob

        link = await self._live()
        rows = await link.asend(job_calls.list_jobs(self._plan.live_id()))
        return tuple(AsyncJob(link, self._plan.live_id(), row.id) for row in rows)

    async def connect_url(self, port: int, *, ttl_seconds: float = 600.0, protocol: Protocol = "tcp") -> str:
        """A WebSocket address that opens one port inside, for whoever has it, for so long at most.

        With `cdp` it is the DevTools socket of a browser that listens there, for Playwright's `connect_over_cdp`.
        """
        request = ConnectUrlRequest(port=port, ttl_s=ttl_seconds, protocol=protocol)
        link = await self._live()
        answer = await link.asend(job_calls.connect_url(self._plan.live_id(), request))
        return answer.url

    async def port_forward(self, port: int, *, local_port: int = 0, local_host: str = "127.0.0.1") -> AsyncPortForward:
        """A local port that leads to a port inside, until it is closed."""
        from hotbed.sdk.tunnels import AsyncPortForward

        link = await self._live()
        forward = AsyncPortForward(link, self._plan.live_id(), port)
        await forward._listen(local_host, local_port)
        return forward
