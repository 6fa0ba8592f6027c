"""Processes, jobs and ports are tested where they are made: here, that the two faces are one."""

from __future__ import annotations

import asyncio
import inspect

from hotbed.sdk.async_sandbox import AsyncSandbox
from hotbed.sdk.async_sandbox_talk import AsyncSandboxTalk
from hotbed.sdk.client import Client
from hotbed.sdk.sandbox import Sandbox
from hotbed.sdk.sandbox_talk import SandboxTalk


def test_the_faces_have_the_same_methods() -> None:
    """By name and by what they take."""
    blocking, asynchronous = (
        {name: list(inspect.signature(member).parameters) for name, member in vars(face).items() if callable(member)}
        for face in (SandboxTalk, AsyncSandboxTalk)
    )

    assert blocking == asynchronous


def test_an_address_opens_one_port_of_one_sandbox(client: Client) -> None:
    """For whoever has it."""

    async def twin() -> str:
        async with AsyncSandbox("python", client=client) as other:
            return await other.connect_url(80)

    with Sandbox("python", client=client) as sandbox:
        url = sandbox.connect_url(8080, ttl_seconds=60)
        assert url.startswith(f"ws://localhost/v1/sandboxes/{sandbox.id}/connect?port=8080&t=")
        assert "port=80&t=" in asyncio.run(twin())
