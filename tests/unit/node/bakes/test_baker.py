"""The parts of a bake that need no image. The whole of it is exercised by tests/e2e/test_images.py."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import BakeFailed, NotSupported
from hotbed.node.bakes.baker import Baked, Baker, copy, setup_limits
from hotbed.node.bakes.recipe import Recipe
from hotbed.runtime.backends.fake import FakeBackend
from hotbed.runtime.base import Limits, TemplateSpec
from hotbed.runtime.standing import Start
from hotbed.wire.templates import Ready


class Teller:
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def phase(self, name: str) -> None:
        """A phase begins."""
        self.told.append(name)

    def progress(self, about: Mapping[str, Any]) -> None:
        """How far it is."""
        self.told.append(about["step"])

    def log(self, text: str) -> None:
        """What was printed."""
        self.told.append(text)


def bake(parent: TemplateSpec | None = None, **recipe: Any) -> tuple[Baked, list[Any]]:
    """Bake on a backend that isolates nothing."""
    teller = Teller()

    async def attempt() -> Baked:
        backend = FakeBackend()
        await backend.start()
        try:
            baker = Baker(backend, parent=lambda name: parent or TemplateSpec(name=name))
            return await baker.bake(Recipe(**{"name": "x", "image": "host", **recipe}), teller)
        finally:
            await backend.close()

    return asyncio.run(attempt()), teller.told


def test_phases_come_in_order_and_ready_is_tried() -> None:
    """In a fork of what sandboxes will be forked from."""
    baked, told = bake(ready=Ready(cmd="echo up"), env=(("A", "1"),))

    assert told == ["Converting", "Distributing", "ready", "up\n"]
    assert baked.spec.env == (("A", "1"),) and baked.live_state == "none" and baked.spec.start is None


def test_ready_that_fails_is_the_bakes_failure() -> None:
    """With what it printed."""
    with pytest.raises(BakeFailed, match="exit 3: why"):
        bake(ready=Ready(cmd="echo why; exit 3"))


def test_another_template_is_a_beginning() -> None:
    """Its variables, preloads and what it starts come along, unless they are replaced."""
    start = Start(cmd="true")
    parent = TemplateSpec(name="p", env=(("A", "1"), ("B", "1")), preload=("json",), start=start)

    baked, _ = bake(parent, image="template:p", env=(("B", "2"),), preload=("json", "decimal"))

    assert baked.spec.env == (("A", "1"), ("B", "2")) and baked.spec.preload == ("json", "decimal")
    assert baked.spec.start == start and baked.live_state == "restarted"


def test_a_backend_without_images_says_so() -> None:
    """Before it would pretend."""
    with pytest.raises(NotSupported, match="no images"):
        bake(image="docker://debian:12")


def test_setup_gets_more_room_than_a_sandbox() -> None:
    """And never less than the template's own."""
    limits = setup_limits(Limits(memory_mib=100_000))

    assert limits.memory_mib == 100_000 and limits.disk_mib > Limits().disk_mib


def test_a_saved_layer_is_bounded(tmp_path: Path) -> None:
    """A sandbox writes it, and the host's disk holds it."""
    for most, whole in ((10, True), (9, False)):
        source, sink = os.pipe()
        os.write(sink, b"0123456789")
        os.close(sink)
        target = os.open(tmp_path / str(most), os.O_RDWR | os.O_CREAT)
        assert copy(source, target, most) is whole
        os.close(target)
