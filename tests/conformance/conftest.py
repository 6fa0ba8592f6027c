"""The suite that every backend passes: the one that isolates, and the fake that stands in for it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from hotbed.runtime.backends.fake import FakeBackend
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import Backend, Box, BoxRequest, ExecOutcome, ExecRequest, Template, TemplateSpec

T = TypeVar("T")
BACKENDS: dict[str, Callable[[str], Backend]] = {
    "fork": lambda directory: ForkBackend(ForkSettings(spares=2, run_dir=directory)),
    "fake": lambda directory: FakeBackend(),
}


class Harness:
    """A started backend with one template, driven from plain tests."""

    def __init__(self, name: str, directory: str) -> None:
        self.name = name
        self.backend = BACKENDS[name](directory)
        self._loop = asyncio.new_event_loop()
        self.run(self.backend.start())
        self.template: Template = self.run(self.backend.template(TemplateSpec(name="python", programs=())))

    def run(self, waited: Awaitable[T]) -> T:
        """Wait for something, for a bounded time."""

        async def bounded() -> T:
            return await asyncio.wait_for(waited, 40.0)

        return self._loop.run_until_complete(bounded())

    @contextmanager
    def box(self, **request: Any) -> Iterator[Box]:
        """A sandbox."""
        box = self.run(self.template.fork(BoxRequest(**request)))
        try:
            yield box
        finally:
            self.run(box.kill())

    def exec(self, box: Box, kind: Any, program: str = "", **request: Any) -> ExecOutcome:
        """Run one thing in a sandbox."""
        return self.run(box.exec(ExecRequest(kind=kind, program=program.encode(), **request)))

    def once(self, kind: Any, program: str = "", **request: Any) -> ExecOutcome:
        """Run one thing in a sandbox of its own."""
        with self.box() as box:
            return self.exec(box, kind, program, **request)

    def close(self) -> None:
        """End the backend."""
        self.run(self.backend.close())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


@pytest.fixture(scope="session", params=sorted(BACKENDS))
def harness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """Each backend in turn."""
    made = Harness(request.param, tempfile.gettempdir())
    yield made
    made.close()
