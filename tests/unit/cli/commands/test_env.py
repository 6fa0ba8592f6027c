"""`hotbed env` writes an environment and asks a node to try one out."""

from __future__ import annotations

from pathlib import Path

from hotbed.cli.commands.env import FILES
from tests.unit.cli.conftest import Hotbed, hotbed, node_socket

__all__ = ["hotbed", "node_socket"]


def test_init_writes_an_environment_over_none_that_is_there(hotbed: Hotbed, tmp_path: Path) -> None:
    """An author's work is never overwritten."""
    said = hotbed("env", "init", str(tmp_path / "e"), "--json")
    again = hotbed("env", "init", str(tmp_path / "e"))

    assert (said.code, said.json["files"]) == (0, list(FILES))
    assert "hotbed env check" in said.err
    assert (tmp_path / "e" / "tests" / "test_add.py").exists()
    assert again.code == 2
    assert "has env.py" in again.err


def test_check_of_what_is_no_environment_is_asked_wrongly(hotbed: Hotbed, tmp_path: Path) -> None:
    """Before any node is asked."""
    said = hotbed("env", "check", str(tmp_path))

    assert said.code == 2
    assert "no env.py" in said.err


def test_check_passes_on_what_the_node_cannot_do(hotbed: Hotbed, tmp_path: Path) -> None:
    """The fake backend runs no environments."""
    hotbed("env", "init", str(tmp_path / "e"))
    said = hotbed("env", "check", str(tmp_path / "e"))

    assert said.code == 3
    assert "fake backend" in said.err
