"""Processes, jobs and ports of a sandbox."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hotbed.sdk import job_calls
from hotbed.sdk.living import LivingSandbox
from hotbed.sdk.programs import Files, Text, process_request
from hotbed.wire.tunnels import ConnectUrlRequest, Protocol

if TYPE_CHECKING:
    from hotbed.sdk.jobs import Job
    from hotbed.sdk.port_forward import PortForward
    from hotbed.sdk.process import Process

# What these bring with them (asyncio, threads, sockets of their own) is not for those who do not use it.


class SandboxTalk(LivingSandbox):
    """What a `Sandbox` can do beside running one thing and waiting for it."""

    def process(
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
    ) -> Process:
        """Start a program and talk to it. `terminal` gives it one of so many rows and columns; it cannot be pinned.

        Without `timeout_seconds` it may run for a day.
        """
        from hotbed.sdk.process import Process

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
        link = self._live()
        return Process._start(link, self._plan.live_id(), request)

    def start_job(
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
    ) -> Job:
        """Run one thing in the background. It goes on when this client is gone, and ends with the sandbox."""
        from hotbed.sdk.jobs import Job

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
        link = self._live()
        row = link.send(job_calls.start_job(self._plan.live_id(), request))
        return Job(link, self._plan.live_id(), row.id)

    def jobs(self) -> tuple[Job, ...]:
        """The jobs that the node remembers, oldest first."""
        from hotbed.sdk.jobs import Job

        link = self._live()
        rows = link.send(job_calls.list_jobs(self._plan.live_id()))
        return tuple(Job(link, self._plan.live_id(), row.id) for row in rows)

    def connect_url(self, port: int, *, ttl_seconds: float = 600.0, protocol: Protocol = "tcp") -> str:
        """A WebSocket address that opens one port inside, for whoever has it, for so long at most.

        With `cdp` it is the DevTools socket of a browser that listens there, for Playwright's `connect_over_cdp`.
        """
        request = ConnectUrlRequest(port=port, ttl_s=ttl_seconds, protocol=protocol)
        link = self._live()
        answer = link.send(job_calls.connect_url(self._plan.live_id(), request))
        return answer.url

    def port_forward(self, port: int, *, local_port: int = 0, local_host: str = "127.0.0.1") -> PortForward:
        """A local port that leads to a port inside, until it is closed."""
        from hotbed.sdk.port_forward import PortForward

        link = self._live()
        forward = PortForward(link, self._plan.live_id(), port)
        forward._listen(local_host, local_port)
        return forward
