"""What env.py imports at its top is known without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.pools.imports import preloadable

TEXT = """
from __future__ import annotations
import json, numpy as np
import xml.etree.ElementTree as tree
from collections import deque
from . import near
from boltzlabs.env import serve
import helper, pkg
import torch
def step(action):
    import sqlite3
if True:
    import csv
"""


def test_imports_at_the_top_of_known_modules_are_found(tmp_path: Path) -> None:
    """The standard library, and what is named; not its own files, ours, or what a function imports late."""
    (tmp_path / "env.py").write_text(TEXT)
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "pkg").mkdir()

    assert preloadable(tmp_path) == ("json", "xml.etree.ElementTree", "collections")
    assert preloadable(tmp_path, also=["numpy", "helper"]) == ("json", "numpy", "xml.etree.ElementTree", "collections")


@pytest.mark.parametrize("text", ["def f(:", "\0", "x = " + "(" * 10_000, "import this, antigravity"])
def test_what_cannot_be_read_or_should_not_run_gives_nothing(tmp_path: Path, text: str) -> None:
    """Its author is told when it is loaded."""
    (tmp_path / "env.py").write_text(text)

    assert preloadable(tmp_path) == ()
