"""What the built-in templates need and this machine may lack, made on first use and kept in the node's home.

A built-in is of this host where the host has what it needs: a module, a program. Else Python packages are installed by
pip into a folder of the node's, and programs come as an image of Debian packages. Meanwhile whoever asks for a sandbox
is told to ask again; what cannot be made is told with its reason, and tried again for who asks a while later.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hotbed.errors import AtCapacity, Error, TemplateFailed
from hotbed.runtime.base import Backend, TemplateSpec
from hotbed.runtime.images.building import Builder

_HOST_PATH = "/usr/local/bin:/usr/bin:/bin"  # what sandboxes of the host see
_RETRY_S = 2.0
_AGAIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Of one built-in: a program or modules that it stands or falls with, and the packages that bring them."""

    program: str = ""
    debian: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()

    def is_met(self) -> bool:
        """Whether this host, or what was installed for it, has it."""
        if self.program and shutil.which(self.program, path=_HOST_PATH) is None:
            return False
        return all(importlib.util.find_spec(name) is not None for name in self.modules)


ML = ("numpy", "scipy", "pandas", "sklearn")
NEEDS: Mapping[str, Need] = {
    "python-numpy": Need(modules=("numpy",), pip=("numpy",)),
    "python-ml": Need(modules=ML, pip=("numpy", "scipy", "pandas", "scikit-learn")),
    "node": Need(program="node", debian=("nodejs",)),
    "bash": Need(program="bash", debian=("bash",)),
}


class Catalog:
    """Completes the specs of built-in templates."""

    def __init__(self, backend: Backend, needs: Mapping[str, Need] = NEEDS) -> None:
        self._backend = backend
        self._needs = needs
        self._met: set[str] = set()
        self._images: dict[str, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[str, tuple[float, Error]] = {}

    def complete(self, spec: TemplateSpec) -> TemplateSpec:
        """The spec with what it needs. Raises `AtCapacity` while that is made, `TemplateFailed` if it cannot be."""
        need, builder = self._needs.get(spec.name), self._builder()
        if need is None or builder is None or spec.name in self._met:
            return spec
        if need.pip:
            self._show(builder, spec.name)
        if need.is_met():
            self._met.add(spec.name)
            return spec
        if spec.name in self._images:
            return replace(spec, image=self._images[spec.name])
        self._check_failed(spec.name)
        if spec.name not in self._tasks:
            self._tasks[spec.name] = asyncio.ensure_future(self._make(builder, spec.name, need))  # noqa: TID251 - owned here, ended by `close`
        raise AtCapacity(
            f"template {spec.name!r} is being made from packages, on its first use", retry_after_s=_RETRY_S
        )

    def _check_failed(self, name: str) -> None:
        at_s, error = self._failed.get(name, (0.0, None))
        if error is not None and time.monotonic() - at_s < _AGAIN_S:
            message = f"template {name!r} could not be made here: {error.message}"
            raise TemplateFailed(message, hint=_hint(self._needs[name]))

    def _builder(self) -> Builder | None:
        found: Builder | None = getattr(self._backend, "builder", None)
        return found

    def _show(self, builder: Builder, name: str) -> None:
        """Have what was installed for it found, after all that this Python has itself."""
        folder = builder.packages(name)
        if folder.is_dir() and str(folder) not in sys.path:
            sys.path.append(str(folder))
            importlib.invalidate_caches()

    async def _make(self, builder: Builder, name: str, need: Need) -> None:
        try:
            if need.pip:
                await builder.install(need.pip, name)
            else:
                record = await builder.build(f"deb:{','.join(need.debian)}", lambda about: None)
                self._images[name] = record.digest
            self._failed.pop(name, None)
        except Error as error:
            self._failed[name] = (time.monotonic(), error)
        finally:
            self._tasks.pop(name, None)

    async def close(self) -> None:
        """Give up what is being made."""
        tasks: list[Any] = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _hint(need: Need) -> str:
    if need.pip:
        return f"{sys.executable} -m pip install {' '.join(need.pip)}"
    return f"apt-get install {' '.join(need.debian)}, or bake a template of an image that has it"
