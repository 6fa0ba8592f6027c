"""The node itself."""

from __future__ import annotations

from typing import Any

from hotbed.node.node import Node
from hotbed.server.operation import Call
from hotbed.wire.health import Health


async def health(node: Node, call: Call) -> Health:
    """Whether it is there, and how busy."""
    return node.health()


async def capabilities(node: Node, call: Call) -> dict[str, Any]:
    """What this host allows, as doctor shows it."""
    return dict(node.backend.capabilities())


async def stats(node: Node, call: Call) -> dict[str, Any]:
    """Counters and histograms."""
    return node.snapshot()
