"""hotbed bake."""

from __future__ import annotations

import pytest

from hotbed import Template
from tests.unit.cli.conftest import Hotbed


def test_a_bake_is_shown_and_summed_up(hotbed: Hotbed) -> None:
    """Its phases on stderr, what it became on stdout."""
    told = hotbed("bake", "--name", "cli-made", "--ready-cmd", "echo up", "--env", "A=1", "--width", "3")

    assert told.code == 0 and told.out.split()[:2] == ["live", "cli-made"]
    assert "live" in told.err and "up" in told.err
    row = hotbed("bake", "--name", "cli-made", "--ready-cmd", "echo up", "--env", "A=1", "--width", "3", "--json").json
    assert row["phase"] == "Live" and row["declared"] == 3
    hotbed("templates", "cli-made", "--delete")


def test_a_bake_that_fails_says_why(hotbed: Hotbed) -> None:
    """It was asked for something that cannot be."""
    told = hotbed("bake", "--name", "cli-bad", "--ready-cmd", "exit 3")

    assert told.code == 2 and "exit 3" in told.err
    hotbed("templates", "cli-bad", "--delete")


def test_who_stops_waiting_is_told_how_to_give_it_up(hotbed: Hotbed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bake is the node's, and goes on."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Template, "bake", interrupted)

    told = hotbed("bake", "--name", "cli-long")

    assert told.code != 0 and "hotbed templates cli-long --delete" in told.err
