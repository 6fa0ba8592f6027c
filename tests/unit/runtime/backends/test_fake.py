"""The backend without isolation. What it does as a backend is in tests/conformance; here is what is its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

from hotbed.runtime.backends.fake import PREFIX, FakeBackend, sweep
from hotbed.runtime.base import BoxRequest, TemplateSpec

SPEC = TemplateSpec(name="python")


def test_it_never_claims_to_isolate() -> None:
    """Nobody may take it for a sandbox."""

    async def scenario() -> None:
        backend = FakeBackend()
        assert backend.capabilities()["isolation"] == "fake"
        await backend.start()
        box = await (await backend.template(SPEC)).fork(BoxRequest())
        assert (box.isolation, box.warm_hit) == ("fake", False)
        await backend.close()

    asyncio.run(scenario())


def test_closing_ends_every_box_and_removes_every_directory() -> None:
    """Twice is no error."""

    async def scenario() -> None:
        backend = FakeBackend()
        await backend.start()
        template = await backend.template(SPEC)
        assert await backend.template(SPEC) is template
        boxes = [await template.fork(BoxRequest()) for _ in range(3)]
        assert backend.stats() == {"boxes": 3, "templates": 1, "forks": 3}
        home = Path(backend._home)
        assert len(list(home.iterdir())) == 3
        await backend.close()
        await backend.close()
        assert not home.exists()
        assert [await box.wait_gone() for box in boxes] == ["killed"] * 3

    asyncio.run(scenario())


def test_the_directory_of_a_killed_run_is_swept(tmp_path: Path) -> None:
    """That of a living one is not."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    for pid in (ended.pid, os.getpid()):
        (tmp_path / f"{PREFIX}{pid}-x").mkdir()

    sweep(tmp_path)

    assert [entry.name for entry in tmp_path.iterdir()] == [f"{PREFIX}{os.getpid()}-x"]
