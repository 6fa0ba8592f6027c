"""Steps from folder to folder keep one descriptor, and go where they came from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotbed.guest import steps


def test_down_and_up_again_costs_no_descriptor(tmp_path: Path) -> None:
    """However often."""
    (tmp_path / "inner").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    folder = os.open(tmp_path, os.O_RDONLY)
    top = os.fstat(folder)
    for _ in range(3):
        folder = steps.up(steps.to(folder, "inner"), top)

    assert os.listdir(folder) == ["inner"]
    os.close(folder)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_step_that_fails_leaves_the_folder_open(tmp_path: Path) -> None:
    """A link leads nowhere, and a folder that was moved has another above it."""
    for name in ("a/inner", "b"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/link").symlink_to("inner")
    folder = os.open(tmp_path / "a", os.O_RDONLY)
    above = os.fstat(folder)
    with pytest.raises(OSError, match="link"):
        steps.to(folder, "link")
    folder = steps.to(folder, "inner")
    (tmp_path / "a/inner").rename(tmp_path / "b/inner")
    with pytest.raises(OSError, match="moved"):
        steps.up(folder, above)
    os.close(folder)
