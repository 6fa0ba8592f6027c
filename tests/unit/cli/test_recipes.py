"""A recipe from a file and from options."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pytest

from hotbed.cli import recipes
from hotbed.cli.main import make_parser
from hotbed.errors import InvalidRequest
from hotbed.wire.templates import Ready

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="the file is read with tomllib")


def written(folder: Path, text: str) -> str:
    """A directory with that file."""
    (folder / "Task").mkdir(exist_ok=True)
    (folder / "Task/hotbed.toml").write_text(text)
    return str(folder / "Task")


def options(*words: str) -> argparse.Namespace:
    """As the command line gives them."""
    return make_parser().parse_args(["bake", *words])


def test_a_file_is_read_and_its_paths_are_beside_it(tmp_path: Path) -> None:
    """Its directory names the template if it does not."""
    path = written(
        tmp_path, '[template]\nimage = "rootfs:root"\nsetup = ["a"]\n[template.ready]\ncmd = "b"\nports = [1]\n'
    )

    recipe = recipes.with_options(recipes.of_file(path), options())

    assert recipe == {
        "name": "task",
        "image": f"rootfs:{tmp_path}/Task/root",
        "setup": ["a"],
        "ready": Ready(cmd="b", ports=(1,)),
    }


def test_options_win_over_the_file(tmp_path: Path) -> None:
    """One by one."""
    path = written(tmp_path, '[template]\nname = "x"\nwidth = 2\n[template.ready]\ncmd = "b"\n')
    words = [
        "--egress",
        '{"allow": ["pypi.org"]}',
        "--width",
        "3",
        "--env",
        "A=1=2",
        "--limit",
        "pids=9",
        "--ready-port",
        "80",
        "--image",
        "debian:12",
    ]

    recipe = recipes.with_options(recipes.of_file(path), options(*words))

    assert recipe["egress"] == {"allow": ["pypi.org"]}
    assert recipe["width"] == 3 and recipe["env"] == {"A": "1=2"} and recipe["limits"] == {"pids": 9.0}
    assert recipe["ready"] == Ready(cmd="b", ports=(80,)) and recipe["image"] == "debian:12"


@pytest.mark.parametrize(
    "text", ["x", "[other]", "[template]\nimg = 1", "[template]\nready = 3", "[template.ready]\nx = 1"]
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    """With what it may have."""
    with pytest.raises(InvalidRequest):
        recipes.of_file(written(tmp_path, text))


def test_what_is_missing_or_malformed_is_named() -> None:
    """Before a node is asked."""
    bad: Any
    for bad in ([], ["--name", "x", "--env", "A"], ["--name", "x", "--limit", "pids=many"]):
        with pytest.raises(InvalidRequest):
            recipes.with_options({}, options(*bad))
    with pytest.raises(InvalidRequest, match="cannot be read"):
        recipes.of_file("/nowhere")
