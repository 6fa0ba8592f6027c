"""Many forks of one sandbox: one copy of its files, whatever their number, and nothing left afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import BoxRequest, ExecRequest, TemplateSpec

CHILDREN = 512


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_512_forks_of_100_mb_share_one_copy(tmp_path: Path) -> None:
    """And each can write without the others seeing it."""
    tmp_path.chmod(0o755)  # a template of root's has to reach it with an id of its own
    backend = ForkBackend(ForkSettings(spares=0, run_dir=str(tmp_path)))

    async def said(box: Any, command: str) -> bytes:
        outcome = await box.exec(ExecRequest(kind="command", program=command.encode()))
        return bytes(outcome.stdout)

    async def scenario() -> None:
        await backend.start()
        template = await backend.template(TemplateSpec(name="python", programs=()))
        parent: Any = await template.fork(BoxRequest())
        await said(parent, "head -c 100000000 /dev/zero > /work/changed")
        layer = await backend.layers.take(parent)
        children = [await template.fork(BoxRequest(layer=layer)) for _ in range(CHILDREN)]
        layer.close()
        await asyncio.gather(*(child.ready() for child in children))
        assert 95 << 20 < backend.layers.size < 110 << 20
        for number in (0, CHILDREN - 1):
            assert await said(children[number], f"echo {number} > own; stat -c %s changed; cat own") == (
                b"100000000\n%d\n" % number
            )
        assert await said(children[1], "ls") == b"changed\n"
        await asyncio.gather(*(child.kill() for child in children))
        await parent.kill()
        assert backend.stats()["boxes"] == 0

    async def main() -> None:
        try:
            await scenario()
        finally:
            await backend.close()

    asyncio.run(main())
