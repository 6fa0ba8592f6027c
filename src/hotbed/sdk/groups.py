"""A group: sandboxes with one name, that are looked at and ended together. Both faces."""

from __future__ import annotations

from typing import Any

from hotbed.sdk import calls, job_calls
from hotbed.sdk.async_sandbox import AsyncSandbox
from hotbed.sdk.client import AsyncClient, Client
from hotbed.sdk.sandbox import Sandbox
from hotbed.wire.checks import require
from hotbed.wire.sandboxes import SandboxRow, Selector

NAME_LIMIT = 128


def _checked(name: str) -> str:
    good = isinstance(name, str) and 0 < len(name) <= NAME_LIMIT
    require(good, f"a group's name has 1 to {NAME_LIMIT} characters, not {name!r:.200}")
    return name


class SandboxGroup:
    """The sandboxes of one name, from `Client.group`. Leaving `with` ends them all, at once."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = _checked(name)

    def sandbox(self, template: str, **options: Any) -> Sandbox:
        """A `Sandbox` of this group, with the options of one. It is forked when it is first used."""
        return Sandbox(template, client=self._client, group=self.name, **options)

    def sandboxes(self) -> tuple[SandboxRow, ...]:
        """Those that live."""
        return tuple(row for row in self._client.link.send(calls.list_sandboxes()) if row.group == self.name)

    def close(self) -> tuple[str, ...]:
        """End them all, whoever made them; which they were. Idempotent."""
        return self._client.link.send(job_calls.delete_sandboxes(Selector(group=self.name)))

    def __enter__(self) -> SandboxGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncSandboxGroup:
    """The sandboxes of one name, from `AsyncClient.group`. Leaving `async with` ends them all, at once."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self._client = client
        self.name = _checked(name)

    def sandbox(self, template: str, **options: Any) -> AsyncSandbox:
        """An `AsyncSandbox` of this group, with the options of one. It is forked when it is first used."""
        return AsyncSandbox(template, client=self._client, group=self.name, **options)

    async def sandboxes(self) -> tuple[SandboxRow, ...]:
        """Those that live."""
        return tuple(row for row in await self._client.link.asend(calls.list_sandboxes()) if row.group == self.name)

    async def close(self) -> tuple[str, ...]:
        """End them all, whoever made them; which they were. Idempotent."""
        return await self._client.link.asend(job_calls.delete_sandboxes(Selector(group=self.name)))

    async def __aenter__(self) -> AsyncSandboxGroup:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
