"""What a server for others keeps and sends."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hotbed.server.recording import Recording
from hotbed.server.settings import Settings
from tests.unit.node.nodes import running_node


def test_the_first_line_of_the_log_is_how_the_server_was_started(tmp_path: Path) -> None:
    """What a tier allowed then can be looked up."""

    async def scenario() -> None:
        async with running_node() as node:
            tiers = {"night": {"sandboxes": 3}}
            settings = Settings(home=str(tmp_path), runtime_dir=str(tmp_path), shared=True, port=8080, tiers=tiers)
            recording = Recording(node, settings)
            assert node.audit is not None
            [line] = node.audit.page(limit=9)
            assert (line["action"], line["target"]) == ("server.start", "127.0.0.1:8080")
            assert line["details"] == {"tiers": tiers, "tls": False, "insecure": False}
            recording.close()

    asyncio.run(scenario())


def test_a_node_of_ones_own_keeps_and_sends_nothing(tmp_path: Path) -> None:
    """There is nobody else."""

    async def scenario() -> None:
        async with running_node() as node:
            Recording(node, Settings(home=str(tmp_path), runtime_dir=str(tmp_path))).close()
            assert (node.audit, node.stats.heard) == (None, None)
            assert list(tmp_path.iterdir()) == []

    asyncio.run(scenario())
