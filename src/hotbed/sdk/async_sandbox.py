"""A sandbox that is kept across execs, for asyncio. The twin of `sandbox.py`; a test keeps them alike."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hotbed.errors import NodeUnavailable, NotFound, SandboxGone
from hotbed.sdk import calls, egress_calls
from hotbed.sdk.async_forking import AsyncForkingSandbox
from hotbed.sdk.async_sandbox_files import AsyncSandboxFiles
from hotbed.sdk.async_sandbox_talk import AsyncSandboxTalk
from hotbed.sdk.client import AnyClient
from hotbed.sdk.connect import alink_of, link_of
from hotbed.sdk.output_lines import OnOutput
from hotbed.sdk.programs import Determinism, EgressPolicy, Files, Level, Seed, Text
from hotbed.sdk.results import Result
from hotbed.sdk.sandbox_plan import SandboxPlan, sandbox_request
from hotbed.sdk.transport import Link
from hotbed.wire.checks import egress_object
from hotbed.wire.egress import EgressState

if TYPE_CHECKING:
    import asyncio


class AsyncSandbox(AsyncSandboxFiles, AsyncSandboxTalk, AsyncForkingSandbox):
    """A warm fork of a template, kept until it is closed. Every method is a coroutine.

    It is forked on entering `async with`, at `start()`, or at first use. Leaving ends it and everything in it, also on
    an error; so does the end of this process. Defaults given here hold for every exec.
    """

    def __init__(
        self,
        template: str,
        *,
        client: AnyClient | None = None,
        limits: Mapping[str, float] | None = None,
        ttl_seconds: float | None = None,
        idle_ttl_seconds: float | None = None,
        label: str | None = None,
        labels: Mapping[str, str] | None = None,
        group: str | None = None,
        seed: Seed | None = None,
        determinism: Determinism | None = None,
        min_isolation: Level | None = None,
        egress: EgressPolicy | None = None,
        default_timeout: float = 60.0,
    ) -> None:
        request = sandbox_request(
            template,
            limits=limits,
            ttl_s=ttl_seconds,
            idle_ttl_s=idle_ttl_seconds,
            label=label,
            labels=labels,
            group=group,
            seed=seed,
            determinism=determinism,
            min_isolation=min_isolation,
            egress=egress,
        )
        self._plan = SandboxPlan(request, default_timeout)
        self._client = client
        self._link: Link | None = link_of(client) if client is not None else None
        self._starting: asyncio.Lock | None = None

    @classmethod
    async def attach(cls, client: AnyClient, session_id: str, *, default_timeout: float = 60.0) -> AsyncSandbox:
        """Take over a sandbox that lives already, say after a crash of its owner's thread. Leaving `with` ends it."""
        row = await client.link.asend(calls.get_sandbox(session_id))
        sandbox = cls(row.template, client=client, default_timeout=default_timeout)
        sandbox._plan.adopt(row)
        return sandbox

    @property
    def id(self) -> str:
        """The node's name for it. Raises `SandboxGone` when it is not running."""
        return self._plan.live_id()

    @property
    def session_id(self) -> str | None:
        """The same; None when it is not running."""
        return self._plan.id

    @property
    def template(self) -> str:
        """What it is a fork of."""
        return self._plan.request.template

    @property
    def warm_hit(self) -> bool:
        """Whether it was served from what was warm already."""
        return self._plan.warm_hit

    @property
    def fork_time_ms(self) -> float:
        """How long the fork took on the node."""
        return self._plan.fork_time_ms

    @property
    def isolation(self) -> str:
        """The level it is isolated at."""
        return self._plan.isolation

    @property
    def seed(self) -> str:
        """The seed of this fork, from which unseeded execs get theirs."""
        return self._plan.seed

    async def start(self) -> None:
        """Fork it now, if it does not run."""
        import asyncio  # not for those who do not use it

        self._starting = self._starting or asyncio.Lock()
        async with self._starting:
            if self._plan.id is None:
                link = self._link = await alink_of(self._client)
                created = await link.asend(calls.create_sandbox(self._plan.request))
                self._plan.adopt(created)

    async def exec(
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
        seed: Seed | None = None,
        determinism: Determinism | None = None,
        clock: Mapping[str, int] | None = None,
        output_bytes: int | None = None,
        keep_going: bool = False,
        on_output: OnOutput | None = None,
    ) -> Result:
        """Run one thing and wait for it: `code`, `command` or `commands`, as in `rollout_once`.

        What it leaves behind (files, background processes) is there for the next exec. `on_output(stream, data)` is
        called with each piece of output as it comes; stream is 1 or 2.
        """
        request = self._plan.exec_request(
            code=code,
            command=command,
            commands=commands,
            args=args,
            files=files,
            stdin=stdin,
            env=env,
            cwd=cwd,
            timeout_seconds=timeout_seconds,
            seed=seed,
            determinism=determinism,
            clock=clock,
            output_bytes=output_bytes,
            keep_going=keep_going,
            stream=on_output is not None,
        )
        link = await self._live()
        return await link.asend(calls.exec_in(self._plan.live_id(), request, on_output))

    async def update_egress(self, egress: EgressPolicy) -> EgressState:
        """Hold it to another network policy from now on; connections that it would not have let go are ended."""
        link = await self._live()
        return await link.asend(egress_calls.change_egress(self.id, egress_object(egress)))

    async def reset(self) -> None:
        """Throw this fork away and take a pristine one. The id changes."""
        await self.close()
        await self.start()

    async def close(self) -> None:
        """End it and everything in it. Idempotent; in a forked child of its owner it does nothing."""
        sandbox_id = self._plan.let_go()
        if sandbox_id is None or self._link is None or self._link.closed:
            return
        try:
            await self._link.asend(calls.delete_sandbox(sandbox_id))
        except (NotFound, SandboxGone, NodeUnavailable):
            pass  # it is gone already, or its node is and took it along

    async def _live(self) -> Link:
        if self._plan.needs_start():
            await self.start()
        assert self._link is not None, "a sandbox that runs has a node"
        return self._link

    async def __aenter__(self) -> AsyncSandbox:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncSandbox({self.template!r}, id={self.session_id!r})"
