"""The command as a whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hotbed import __version__
from hotbed.cli.commands import ps
from hotbed.cli.main import main
from hotbed.errors import (
    AtCapacity,
    Forbidden,
    InvalidRequest,
    IsolationUnavailable,
    LeaseGone,
    NodeUnavailable,
    NotSupported,
    SandboxBusy,
    SandboxGone,
    Unauthorized,
    UnknownRollout,
)
from tests.unit.cli.conftest import Hotbed


@pytest.mark.parametrize(
    ("error", "code"),
    [
        *((InvalidRequest("what", hint="this"), 2), (UnknownRollout("which"), 2)),
        *((Unauthorized("who"), 2), (Forbidden("not you"), 2)),
        *((NodeUnavailable("gone"), 3), (NotSupported("never"), 3), (SandboxGone("ended"), 3)),
        *((AtCapacity("full"), 3), (SandboxBusy("wait"), 3), (LeaseGone("lost"), 3)),
        (IsolationUnavailable("no"), 4),
    ],
)
def test_errors_have_their_exit_codes(
    error: Exception, code: int, hotbed: Hotbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script can tell its own mistake from a broken node and from a host that cannot."""

    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr(ps, "run", fail)
    said = hotbed("ps")

    assert (said.code, said.out) == (code, "")
    assert f"error: {error.args[0]}" in said.err


def test_errors_are_data_when_asked(hotbed: Hotbed) -> None:
    """With their code, in the shape that the wire has."""
    said = hotbed("run", "nope", "--json", "--", "true")

    assert (said.code, said.json["code"]) == (2, "unknown_template")
    assert "hint: " in said.err


@pytest.mark.parametrize("argv", [["frobnicate"], [], ["ps", "--", "x"], ["run", "python", "echo"]])
def test_wrong_arguments_exit_with_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As argparse does."""
    with pytest.raises(SystemExit) as left:
        main(argv)

    assert left.value.code == 2


def test_interrupt_is_not_a_traceback(hotbed: Hotbed, monkeypatch: pytest.MonkeyPatch) -> None:
    """130, as from a shell."""

    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(ps, "run", interrupt)

    assert hotbed("ps").code == 130


@pytest.mark.slow
def test_reader_that_leaves_early_is_no_error() -> None:
    """`hotbed ps --json | head -0`."""
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait()
    done = subprocess.run(
        [sys.executable, "-m", "hotbed.cli.main", "ps", "--json"], stdout=reader.stdin, stderr=subprocess.PIPE
    )

    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert reader.stdin is not None
    reader.stdin.close()


def test_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    """One place says it."""
    with pytest.raises(SystemExit):
        main(["--version"])

    assert capsys.readouterr().out == f"hotbed {__version__}\n"
