"""hotbed templates."""

from __future__ import annotations

from tests.unit.cli.conftest import Hotbed


def test_templates_and_images_are_listed(hotbed: Hotbed) -> None:
    """As tables, or as data."""
    assert {line.split()[0] for line in hotbed("templates").out.splitlines()} >= {"NAME", "python", "bash"}
    assert "python" in hotbed("templates", "--images").out
    assert any(row["name"] == "python" for row in hotbed("templates", "--json").json)
    assert any(row["id"] == "python" for row in hotbed("templates", "--images", "--json").json)


def test_one_is_told_in_full_with_its_log(hotbed: Hotbed) -> None:
    """What its commands printed is what one looks for."""
    hotbed("bake", "--name", "told", "--ready-cmd", "echo printed")

    out = hotbed("templates", "told").out

    assert "Live" in out and out.rstrip().endswith("printed")
    assert hotbed("templates", "told", "--delete").code == 0
    assert hotbed("templates", "told").code == 2


def test_deleting_needs_a_name(hotbed: Hotbed) -> None:
    """Nobody means all of them."""
    assert hotbed("templates", "--delete").code == 2
