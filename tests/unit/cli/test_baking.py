"""What a bake looks like on a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotbed.cli.baking import Live, line_of
from hotbed.cli.output import Output
from hotbed.wire.templates import TemplateRow

ROW = TemplateRow(id="x", name="x", image="host")


def test_phases_and_whole_lines_are_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    """However often they are told."""
    with Live(Output()) as live:
        for row in (
            ROW,
            ROW,
            replace(ROW, phase="Converting", log="$ make\nhal"),
            replace(ROW, phase="Live", log="$ make\nhalf\n"),
        ):
            live.show(row)

    err = capsys.readouterr().err
    assert [line.split()[-1] for line in err.splitlines()] == ["pending", "converting", "make", "live", "half"]


def test_a_log_that_was_cut_is_shown_from_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A long one keeps its end only."""
    with Live(Output()) as live:
        live.show(replace(ROW, log="a long beginning\n"))
        live.show(replace(ROW, log="end\n"))

    assert capsys.readouterr().err.endswith("a long beginning\nend\n")


def test_the_present_step_is_a_line() -> None:
    """Which layer, which command, how many bytes."""
    lines = [
        line_of(replace(ROW, progress=progress))
        for progress in (
            {"step": "unpacking", "layer": 2, "layers": 5, "at": 3_000_000},
            {"step": "setup", "command": 1, "commands": 2},
            {},
        )
    ]

    assert lines == ["unpacking layer 2/5 3 MB", "setup 1/2", ""]


def test_a_log_that_begins_again_is_shown_once_more(capsys: pytest.CaptureFixture[str]) -> None:
    """Its node was restarted; not with every look from then on."""
    live = Live(Output())
    for log in ("start\nmore\n", "start\n", "start\n", "start\nmore\nend\n"):
        live.show(replace(ROW, log=log))

    assert capsys.readouterr().err.count("start") == 2
