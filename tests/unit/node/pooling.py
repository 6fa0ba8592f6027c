"""A node with pools, for tests: environments as plain processes."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hotbed.node.node import Node
from hotbed.node.policy import Policy
from hotbed.pools import archive
from hotbed.wire.pools import CreatePool
from tests.support.env_backend import EnvBackend
from tests.unit.node.nodes import POLICY

ENV = """
import os
from hotbed.env import serve
def step(action):
    print("stepped", flush=True)
    if isinstance(action, str): exec(action, globals())
    return action, 1.0, False, {}
serve(reset=lambda seed: {"seed": seed}, step=step)
"""


@asynccontextmanager
async def pooling_node(home: Path, **policy: Any) -> AsyncIterator[Node]:
    """A started node, which must leave nothing behind."""
    node = Node(EnvBackend(), Policy(**{**POLICY, "home": str(home), **policy}), version="test")
    await node.start()
    try:
        yield node
    finally:
        await node.close()
        assert (node.admission.running, len(node.nursery), len(node.pools)) == (0, 0, 0)
        assert node.backend.stats()["boxes"] == 0


def backend_of(node: Node) -> EnvBackend:
    """The node's backend as what it is."""
    assert isinstance(node.backend, EnvBackend)
    return node.backend


async def send_env(node: Node, directory: Path, text: str = ENV) -> str:
    """Give the node an environment; its digest."""
    directory.mkdir(exist_ok=True)
    (directory / "env.py").write_text(text)
    packed = archive.pack(directory)
    with packed.tar as tar:
        data = tar.read()
    assert hashlib.sha256(data).hexdigest() == packed.digest
    return (await node.pools.env_dirs.put(packed.digest, chunks(data))).digest


async def chunks(data: bytes) -> AsyncIterator[bytes]:
    """A body as it arrives."""
    for start in range(0, len(data), 4096):
        yield data[start : start + 4096]


async def wanted(node: Node, tmp_path: Path, n: int = 2, **fields: Any) -> CreatePool:
    """A request for a pool of the usual environment."""
    return CreatePool(env_digest=await send_env(node, tmp_path / "my_env"), n=n, **fields)
