"""What a template of an image shows: its layers instead of this host, decided here as plain data.

Two kinds. An image with a Python that can run the guest is *inside*: that Python is the template, so `code` runs in a
fork of it. Any other is served by this host's interpreter: it is the template and the agent, in the template's own
tree, of which sandboxes see nothing; they get the image alone, and run commands.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotbed.runtime import hostview
from hotbed.runtime.base import TemplateSpec
from hotbed.runtime.hostview import Bind
from hotbed.runtime.images.record import DEFAULT_PATH, ImageRecord

WORK = "/work"
HOST_MODULES = ("bz2", "contextlib", "encodings.idna", "gzip", "lzma", "shutil", "tarfile", "traceback", "zipfile")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageView:
    """An image as a template will see it. `layers` are trees of this host, the lowest first."""

    record: ImageRecord
    layers: tuple[Path, ...]
    over: tuple[Path, ...] = ()
    mounts: tuple[Bind, ...] = ()
    packages: tuple[Bind, ...] = ()

    @property
    def inside(self) -> bool:
        """Whether the image's own Python is the template."""
        return self.record.python is not None

    def env(self, own: Mapping[str, str]) -> dict[str, str]:
        """The environment of a sandbox: the image's, then the template's own variables."""
        base = {"PATH": DEFAULT_PATH, "HOME": "/root", "TERM": "dumb", "USER": "root", "LOGNAME": "root"}
        return {**base, **dict(self.record.env), **own}


def describe(
    record: ImageRecord,
    layers: Iterable[Path],
    mounts: Iterable[tuple[str, str]] = (),
    *,
    over: Iterable[Path] = (),
) -> ImageView:
    """The view of an image, with read-only trees of this host mounted into it."""
    binds = tuple(Bind(source=os.path.realpath(source), target=target) for source, target in mounts)
    return ImageView(record=record, layers=tuple(layers), over=tuple(over), mounts=binds)


def as_plan(view: ImageView, own: Mapping[str, str]) -> dict[str, Any]:
    """The view as the plain data that the launcher is sent."""
    mounts = [[bind.source, bind.target] for bind in view.mounts]
    lib = hostview.guest_package()
    if view.record.python is not None:
        base: dict[str, Any] = {
            "executable": view.record.python.executable,
            "env": view.env(own),
            "trees": [],
            "guest": [lib.source, lib.target],
        }
    else:
        base = hostview.as_plan(hostview.describe(), {})
    return {
        **base,
        "mounts": mounts,
        "inside": view.inside,
        "layers": [str(path) for path in view.layers],
        "over": [str(path) for path in view.over],
        "workdir": view.record.workdir or WORK,
    }


def as_config(view: ImageView, spec: TemplateSpec) -> dict[str, Any]:
    """What the template is told about it, besides what every template is told."""
    count = len(view.layers)
    only_commands = {} if view.inside else {"preload": list(HOST_MODULES), "programs": []}
    return {
        **only_commands,
        "lowers": [f"/.hotbed/l/{number}" for number in reversed(range(count))],
        "attached": [*(bind.target for bind in view.mounts), "/dev"],
        "environ": view.env(dict(spec.env)),
        "foreign": True,
        "python": view.inside,
        "cwd": view.record.workdir or WORK,
    }
