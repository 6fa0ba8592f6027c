"""More templates than memory: all of them answer, and those that rest give their memory up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import BoxRequest, ExecRequest, TemplateSpec

TEMPLATES, CAP_MIB, EACH_MIB = 200, 384, 48


class Capped:
    """As much memory as a node under a cap would find: what its templates and their spares leave of it."""

    def __init__(self, backend: ForkBackend) -> None:
        self._backend = backend

    def is_short(self) -> bool:
        """The cap is met by making room, before the kernel has to."""
        return False

    def available_mib(self) -> int:
        """What is left."""
        return max(0, CAP_MIB - EACH_MIB * int(self._backend.stats()["templates"]))


async def answer(backend: ForkBackend, number: int) -> bytes:
    """What a template of its own says."""
    spec = TemplateSpec(name=f"t{number}", programs=(), env=(("NUMBER", str(number)),))
    template = await backend.template(spec)
    box: Any = await template.fork(BoxRequest())
    try:
        outcome = await box.exec(ExecRequest(kind="command", program=b"echo $NUMBER"))
        return bytes(outcome.stdout)
    finally:
        await box.kill()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_more_templates_than_a_cap_holds_all_answer() -> None:
    """Each is there when it is asked for, also the first again after the last, and no more live than the cap holds."""

    async def scenario(backend: ForkBackend) -> None:
        await backend.start()
        memory: Any = Capped(backend)
        backend.lot.memory = memory
        most, stats = 0, backend.stats()
        for number in (*range(TEMPLATES), 0, 1):
            assert await answer(backend, number) == b"%d\n" % number
            backend.lot.look()
            stats = backend.stats()
            most = max(most, stats["templates"])
        assert 4 <= most <= CAP_MIB // EACH_MIB
        assert stats["spares"] * 8 <= CAP_MIB // 4
        assert stats["boxes"] <= stats["spares"] + 1

    backend = ForkBackend(ForkSettings(spares=1, networks=1))

    async def main() -> None:
        try:
            await scenario(backend)
        finally:
            await backend.close()

    asyncio.run(main())
