"""Layers of the fake backend's boxes: plain copies of their directories, made while their processes are stopped."""

from __future__ import annotations

import itertools
import os
import shutil
import signal

from hotbed.errors import SandboxGone
from hotbed.runtime.backends.fake_box import FakeBox
from hotbed.runtime.backends.fake_run import signal_marked


class FakeLayer:
    """A copy of a box's directory."""

    how = "signals"

    def __init__(self, path: str, skipped: tuple[str, ...]) -> None:
        self.path = path
        self.skipped = skipped
        self.size = sum(os.lstat(os.path.join(top, name)).st_size for top, _, names in os.walk(path) for name in names)

    def is_alive(self) -> bool:
        """Whether boxes can still be made with it."""
        return os.path.isdir(self.path)

    def put(self, root: str) -> None:
        """Make a new box's directory of it."""
        if not self.is_alive():
            raise SandboxGone("the snapshot was freed")
        shutil.copytree(self.path, root, symlinks=True)

    def close(self) -> None:
        """Remove it. Idempotent."""
        shutil.rmtree(self.path, ignore_errors=True)


class FakeLayers:
    """Takes them."""

    size = 0

    def __init__(self, home: str) -> None:
        self._home = home
        self._numbers = itertools.count(1)
        self._still: set[int] = set()

    async def take(self, box: FakeBox, *, end: bool = False) -> FakeLayer:
        """Copy a box's directory; with `end`, the box ends."""
        await box.ready()
        still = box.id in self._still
        running = signal_marked(f"{box.root}#", signal.SIGSTOP)
        try:
            path = os.path.join(self._home, f"layer-{next(self._numbers)}")
            shutil.copytree(box.root, path, symlinks=True)
        finally:
            if not still:
                signal_marked(f"{box.root}#", signal.SIGCONT)
        if end:
            await box.kill()
        return FakeLayer(path, (f"{len(running)} running processes",) if running else ())

    async def freeze(self, box: FakeBox) -> str:
        """Stop its processes."""
        await box.ready()
        self._still.add(box.id)
        signal_marked(f"{box.root}#", signal.SIGSTOP)
        return "signals"

    async def thaw(self, box: FakeBox) -> None:
        """Let them go on."""
        self._still.discard(box.id)
        signal_marked(f"{box.root}#", signal.SIGCONT)

    async def reclaim(self, box: FakeBox) -> int | None:
        """There is nothing to ask."""
        return None
