"""Data on one stream, talk on the other."""

from __future__ import annotations

import pytest

from hotbed.cli.output import Output, Progress


def test_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    """Without trailing blanks, which trip scripts."""
    Output().table(("A", "LONG"), [("xyz", 1), ("", 22)])

    assert capsys.readouterr().out == "A    LONG\nxyz  1\n     22\n"


def test_talk_is_not_data(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets the data alone."""
    output = Output()
    output.talk("hello")
    output.line("data")

    assert capsys.readouterr() == ("data\n", "hotbed: hello\n")


def test_color_is_left_out_where_it_is_not_welcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipes, and NO_COLOR on a terminal."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert Output().paint("x", "red") == "\x1b[31mx\x1b[0m"

    monkeypatch.setenv("NO_COLOR", "1")
    assert Output().paint("x", "red") == "x"


def test_bytes_pass_through(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """What a program wrote is not ours to decode."""
    with capfdbinary.disabled():
        pass
    output = Output()
    output.raw(1, b"\xff")
    output.raw(2, b"\xfe")

    assert capfdbinary.readouterr() == (b"\xff", b"\xfe")


def test_progress_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    """A log file is not a terminal."""
    with Progress("work", 2) as progress:
        progress.advance()

    assert capsys.readouterr() == ("", "")


def test_progress_is_drawn_on_a_terminal_and_wiped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of it is drawn whatever the clock says."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress("work", 2) as progress:
        progress.advance()
        progress.advance("2 passed")

    shown = capsys.readouterr().err
    assert f"work [{'#' * 24}] 2/2 2 passed" in shown
    assert shown.endswith("\r\x1b[K")
