"""Every example runs as it stands, against one node, and says what it is there to show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotbed import connect

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOWN = {
    "async_rollouts": r"280 done in .* 20 cancelled",
    "episode": r"fixed",
    "repair_repository": r"totals: \['0\.95', '0\.73', '0\.47'\]",
    "run_pool": r"Passed: True[\s\S]*Passed: False",
    "score_completions": r"",
    "tree_search": r"^height \d+\.\d\d by (\w+ ){7}\w+$",
}


@pytest.fixture(scope="module")
def node() -> Iterator[None]:
    """A node that the examples find."""
    with connect():
        yield


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_an_example_runs_as_it_stands(name: str, node: None) -> None:
    """As its reader would start it."""
    argv = [sys.executable, str(EXAMPLES / f"{name}.py")]
    ran = subprocess.run(argv, capture_output=True, text=True, env=dict(os.environ), timeout=50, check=False)

    assert ran.returncode == 0, ran.stderr
    assert re.search(SHOWN[name], ran.stdout), ran.stdout


def test_no_example_is_left_out() -> None:
    """A new one says here what it shows."""
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SHOWN)
