"""Nodes to measure: each private to this run, with the settings that a measurement needs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotbed import Client, connect
from hotbed.sdk.embedded import NodePlace, start_node


@contextmanager
def node(*, cores: int | None = None, **settings: object) -> Iterator[tuple[Client, int]]:
    """A client of a fresh node, and the node's pid. `cores` pins node and sandboxes; settings are the node's own."""
    directory = tempfile.mkdtemp(prefix="hotbed-bench-")
    place = NodePlace(directory=directory)
    with _environment(settings), _affinity(cores):
        start_node(place)
    try:
        with connect(unix_socket=place.socket) as client:
            yield client, int(Path(directory, "node.pid").read_text())
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _environment(settings: dict[str, object]) -> Iterator[None]:
    names = {f"HOTBED_{name.upper()}": str(value) for name, value in settings.items()}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _affinity(cores: int | None) -> Iterator[None]:
    """What is started inside inherits it."""
    everything = os.sched_getaffinity(0)
    if cores is not None:
        os.sched_setaffinity(0, sorted(everything)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, everything)
