"""A backend without isolation: for tests, and for documentation that runs where namespaces are refused.

It keeps the contract of `runtime/base.py` and passes the conformance suite, and every result says `isolation="fake"`,
so nobody can take it for a sandbox. Each box is a directory of its own that stands for the sandbox's root; programs
are plain processes of this host, in a session of their own. Since nothing hides the host, the paths that a sandbox
promises (`/work`, `/tmp`, ...) are rewritten into the box's directory where they occur in what is to be run, and back
in what it printed. Of the limits only those on time and output are enforced.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections.abc import Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

from hotbed.errors import SandboxFailed
from hotbed.runtime.backends.fake_box import FakeBox
from hotbed.runtime.backends.fake_layers import FakeLayer, FakeLayers
from hotbed.runtime.backends.fake_run import kill_marked
from hotbed.runtime.base import BoxRequest, TemplateSpec

PREFIX = "hotbed-fake-"


class FakeTemplate:
    """A name and a way to make boxes."""

    solos = False

    def __init__(self, spec: TemplateSpec, backend: FakeBackend) -> None:
        self.spec = spec
        self.digest = f"fake-{spec.name}"
        self._backend = backend

    async def fork(self, request: BoxRequest) -> FakeBox:
        """A new box."""
        return self._backend.make_box(self.spec, request)


class FakeBackend:
    """Boxes that isolate nothing."""

    name = "fake"

    def __init__(self) -> None:
        self._home = ""
        self.layers = FakeLayers("")
        self._ids = itertools.count(1)
        self._templates: dict[TemplateSpec, FakeTemplate] = {}
        self._boxes: dict[int, FakeBox] = {}
        self._forks = 0

    async def start(self) -> None:
        """Make the directory that the boxes live in, and remove those of earlier runs that were killed."""
        sweep(Path(tempfile.gettempdir()))
        self._home = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
        self.layers = FakeLayers(self._home)

    async def close(self) -> None:
        """End every box and remove the directory. Idempotent."""
        await asyncio.gather(*(box.kill() for box in tuple(self._boxes.values())))
        if self._home:
            shutil.rmtree(self._home, ignore_errors=True)

    async def template(self, spec: TemplateSpec) -> FakeTemplate:
        """The template of a spec."""
        return self._templates.setdefault(spec, FakeTemplate(spec, self))

    def capabilities(self) -> Mapping[str, Any]:
        """Nothing is isolated."""
        return {"backend": self.name, "isolation": "fake", "missing": ["isolation"]}

    def stats(self) -> Mapping[str, Any]:
        """Counts."""
        return {"boxes": len(self._boxes), "templates": len(self._templates), "forks": self._forks}

    def in_use(self) -> Set[int]:
        """Every box: none is parked."""
        return self._boxes.keys()

    def make_box(self, spec: TemplateSpec, request: BoxRequest) -> FakeBox:
        """A directory and a name for it."""
        number = next(self._ids)
        root = os.path.join(self._home, str(number))
        limits = request.limits or spec.limits
        try:
            if isinstance(request.layer, FakeLayer):
                request.layer.put(root)
            box = FakeBox(number, root, limits=limits, env=dict(spec.env), on_gone=self._forget)
            box.interpreter = spec.interpreter
        except OSError as error:
            raise SandboxFailed(f"no directory for a box: {error}") from None
        self._boxes[number] = box
        self._forks += 1
        return box

    def _forget(self, box: FakeBox) -> None:
        self._boxes.pop(box.id, None)


def sweep(directory: Path) -> None:
    """Remove what runs of this user left that no longer run."""
    for home in directory.glob(f"{PREFIX}*-*"):
        pid = home.name.removeprefix(PREFIX).partition("-")[0]
        with suppress(FileNotFoundError):  # another run came first
            if pid.isdigit() and home.lstat().st_uid == os.getuid() and not Path("/proc", pid).exists():
                kill_marked(f"{home}/")
                shutil.rmtree(home, ignore_errors=True)
