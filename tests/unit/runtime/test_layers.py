"""The node's side of layers: what is told of one, and what it keeps alive."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace
from typing import Any

import pytest

from hotbed.errors import SandboxFailed, SandboxGone
from hotbed.runtime import layers as layers_module
from hotbed.runtime.frost import Frost
from hotbed.runtime.layers import LayerFiles, Layers, left_behind
from hotbed.runtime.templates import TemplateProcess


def layer(*, alive: bool = True, below: LayerFiles | None = None) -> LayerFiles:
    """One that holds a descriptor of nothing."""
    home: Any = SimpleNamespace(is_alive=lambda: alive)
    fd = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    return LayerFiles(fd, home=home, below=below, size=100, how="cgroup", skipped=())


def test_a_layer_counts_those_below() -> None:
    """And is itself counted for as long as anything stands on it."""
    first = layer()
    second = layer(below=first)
    layers = Layers(Frost(None, "run"))
    layers._known.update({first, second})

    assert (first.depth, second.depth, layers.size, len(layers)) == (1, 2, 200, 2)
    del first
    assert layers.size == 200
    layers.close()
    assert not second.is_alive()
    del second
    assert layers.size == 0


def test_a_closed_layer_can_be_stood_on_no_more() -> None:
    """Nor one whose template has ended."""
    closed, orphan = layer(), layer(alive=False)
    os.close(closed.descriptor())
    closed.close()
    closed.close()

    for gone in (closed, orphan):
        with pytest.raises(SandboxGone):
            gone.descriptor()
    orphan.close()


def test_what_stays_behind_is_named() -> None:
    """In words; and whatever an agent says, it is no more than words."""
    told = {"count": 3, "processes": ["python3", "sh"], "ports": [8000], "ipc": ["shm"]}

    assert left_behind(told) == ("3 running processes (python3, sh and 1 more)", "listening port 8000", "System V shm")
    assert left_behind({"count": "many", "processes": 7, "ports": {"a": 1}, "ipc": [["x"]]}) == ()
    assert left_behind({}) == ()


@pytest.mark.parametrize("end", [True, False])
def test_a_layer_that_nobody_gets_is_let_go(end: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sandbox could not be ended, or not be woken: the namespace that was made must not stay for ever."""
    made = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)

    async def fails(*_: object) -> None:
        raise SandboxFailed("not now")

    async def nothing(*_: object) -> Any:
        return {}

    async def hold(*_: object, **__: object) -> tuple[int, int]:
        return made, 100

    async def scenario() -> None:
        frost: Any = SimpleNamespace(begin=nothing, end=fails)
        box: Any = SimpleNamespace(id=1, home=object.__new__(TemplateProcess), request=SimpleNamespace(layer=None))
        box.ready, box.ask_plainly, box.kill = nothing, nothing, fails
        with pytest.raises(SandboxFailed):
            await Layers(frost).take(box, end=end)

    monkeypatch.setattr(layers_module, "_hold", hold)
    asyncio.run(scenario())

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(made)
