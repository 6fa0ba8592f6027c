"""What several of these tests are made from."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.registry import Served, serving
from tests.support.images import Layout, busybox, entry, layer
from tests.support.world import World, lacking, world


@pytest.fixture(scope="session")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with Debian's Python and Node.js, and busybox for a shell, as a tar."""
    if shutil.which("mmdebstrap") is None or os.geteuid() != 0:
        pytest.skip("needs mmdebstrap, and root to run it")
    path = tmp_path_factory.mktemp("debian") / "root.tar"
    include = "--include=python3,nodejs,busybox-static"
    words = ["mmdebstrap", "--mode=root", "--variant=extract", include, "bookworm", str(path)]
    made = subprocess.run(words, capture_output=True, timeout=230, check=False)
    if made.returncode != 0:
        pytest.skip(f"mmdebstrap: {made.stderr.decode(errors='replace')[-300:]}")
    return path


@pytest.fixture(scope="module")
def earth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One world for all."""
    if why := lacking():
        pytest.skip(why)
    with world(tmp_path_factory.mktemp("world"), backend="fork", spares=2) as found:
        yield found


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Served]:
    """A registry with one image of two layers."""
    Layout(tmp_path / "l").add([busybox(), layer(entry("two", b"2" * 1000))])
    with serving(tmp_path / "l") as served:
        yield served
