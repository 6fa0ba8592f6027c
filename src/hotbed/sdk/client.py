"""A client: a held lease on one node, and the questions that are about the node as a whole.

`Client` and `AsyncClient` are two faces of one `Link`; either can be given wherever a client is asked for, by the face
that does the asking. Everything made through a client ends with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hotbed.sdk import calls
from hotbed.sdk.transport import Link
from hotbed.wire.health import Health
from hotbed.wire.sandboxes import SandboxRow
from hotbed.wire.templates import CreateTemplate, TemplateRow


def template_request(
    name: str,
    *,
    image: str,
    preload: Sequence[str],
    env: Mapping[str, str] | None,
    limits: Mapping[str, float] | None,
) -> CreateTemplate:
    """The wire form of a template."""
    return CreateTemplate(name=name, image=image, preload=tuple(preload), env=dict(env or {}), limits=limits)


class Client:
    """A connection to a node, for any number of threads. Closing it ends every sandbox made through it."""

    def __init__(self, link: Link) -> None:
        self.link = link

    @property
    def url(self) -> str:
        """The node's address."""
        return str(self.link.address)

    def health(self) -> Health:
        """Whether the node is well, and how busy."""
        return self.link.send(calls.health())

    def capabilities(self) -> Mapping[str, Any]:
        """What the node's host allows, and which isolation results."""
        return self.link.send(calls.capabilities())

    def stats(self) -> Mapping[str, Any]:
        """The node's counters."""
        return self.link.send(calls.stats())

    def templates(self) -> tuple[TemplateRow, ...]:
        """Every template that can be forked."""
        return self.link.send(calls.list_templates())

    def create_template(
        self,
        name: str,
        *,
        image: str = "host",
        preload: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        limits: Mapping[str, float] | None = None,
    ) -> TemplateRow:
        """Name a template: an image, modules its interpreter has imported, variables, limits."""
        request = template_request(name, image=image, preload=preload, env=env, limits=limits)
        return self.link.send(calls.create_template(request))

    def sandboxes(self) -> tuple[SandboxRow, ...]:
        """Every live sandbox of this user."""
        return self.link.send(calls.list_sandboxes())

    def close(self) -> None:
        """End everything made through this client. Idempotent."""
        self.link.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r}{', closed' if self.link.closed else ''})"


class AsyncClient:
    """The same for asyncio, on one event loop after another if need be."""

    def __init__(self, link: Link) -> None:
        self.link = link

    @property
    def url(self) -> str:
        """The node's address."""
        return str(self.link.address)

    async def health(self) -> Health:
        """Whether the node is well, and how busy."""
        return await self.link.asend(calls.health())

    async def capabilities(self) -> Mapping[str, Any]:
        """What the node's host allows, and which isolation results."""
        return await self.link.asend(calls.capabilities())

    async def stats(self) -> Mapping[str, Any]:
        """The node's counters."""
        return await self.link.asend(calls.stats())

    async def templates(self) -> tuple[TemplateRow, ...]:
        """Every template that can be forked."""
        return await self.link.asend(calls.list_templates())

    async def create_template(
        self,
        name: str,
        *,
        image: str = "host",
        preload: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        limits: Mapping[str, float] | None = None,
    ) -> TemplateRow:
        """Name a template: an image, modules its interpreter has imported, variables, limits."""
        request = template_request(name, image=image, preload=preload, env=env, limits=limits)
        return await self.link.asend(calls.create_template(request))

    async def sandboxes(self) -> tuple[SandboxRow, ...]:
        """Every live sandbox of this user."""
        return await self.link.asend(calls.list_sandboxes())

    async def close(self) -> None:
        """End everything made through this client. Idempotent."""
        self.link.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r}{', closed' if self.link.closed else ''})"


AnyClient = Client | AsyncClient
