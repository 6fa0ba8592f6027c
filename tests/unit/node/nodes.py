"""Nodes for tests, over the fake backend."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hotbed.node.node import Node
from hotbed.node.policy import Policy
from hotbed.runtime.backends.fake import FakeBackend

POLICY: dict[str, Any] = {
    "max_sandboxes": 8,
    "queue_limit": 8,
    "queue_wait_s": 5.0,
    "ttl_s": 60.0,
    "idle_ttl_s": 60.0,
    "lease_ttl_s": 3.0,
    "max_templates": 4,
}


@asynccontextmanager
async def running_node(**policy: Any) -> AsyncIterator[Node]:
    """A started node, which must leave nothing behind."""
    node = Node(FakeBackend(), Policy(**{**POLICY, **policy}), version="test")
    await node.start()
    try:
        yield node
    finally:
        await node.close()
        assert (node.admission.running, node.admission.queued, len(node.nursery)) == (0, 0, 0)
        assert node.backend.stats()["boxes"] == 0
