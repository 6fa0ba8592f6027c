"""hotbed run."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotbed.cli.commands.run import exit_code
from tests.unit.cli.conftest import Hotbed


def test_output_and_exit_code_are_the_programs(hotbed: Hotbed) -> None:
    """As if it had run here."""
    said = hotbed("run", "python", "--", "sh", "-c", "echo out; echo err >&2; exit 7")

    assert (said.code, said.out, said.err) == (7, "out\n", "err\n")


def test_code_runs_from_a_file_with_its_arguments(hotbed: Hotbed, tmp_path: Path) -> None:
    """In the warm interpreter."""
    (tmp_path / "task.py").write_text("import sys, os; print(sys.argv[1:], os.environ['A'])")

    said = hotbed("run", "python", "--code", str(tmp_path / "task.py"), "--env", "A=b=c", "--", "x", "y")

    assert (said.code, said.out) == (0, "['x', 'y'] b=c\n")


@pytest.mark.parametrize(
    ("argv", "given"),
    [(["--code", "-"], b"print('hi')"), (["--stdin", "--", "cat"], b"hi\n")],
    ids=["code", "stdin"],
)
def test_standard_input_is_read_when_asked(
    argv: list[str], given: bytes, hotbed: Hotbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And never otherwise: it may be a terminal."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given)))

    assert hotbed("run", "python", *argv).out == "hi\n"


def test_result_is_data_when_asked(hotbed: Hotbed) -> None:
    """Every field, and nothing else on standard output."""
    said = hotbed("run", "python", "--json", "--seed", "ab" * 32, "--", "echo", "hi")

    assert (said.json["ok"], said.json["stdout"], said.json["seed"]) == (True, "hi\n", "ab" * 32)


def test_a_level_needs_no_seed(hotbed: Hotbed) -> None:
    """One is drawn, and told; the fake node cannot vouch for it."""
    said = hotbed("run", "python", "--json", "--determinism", "full", "--", "echo", "hi")

    assert (len(said.json["seed"]), said.json["seed_ack"]) == (64, "no-ack")


@pytest.mark.slow
def test_timeout_is_said(hotbed: Hotbed) -> None:
    """With the code of `timeout`."""
    said = hotbed("run", "python", "--timeout", "0.2", "--", "sleep", "9")

    assert (said.code, said.err) == (124, "hotbed: killed: timeout\n")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["run", "python"], "nothing to run"),
        (["run", "python", "--code", "/nope"], "/nope cannot be read"),
        (["run", "python", "--code", "-", "--stdin"], "both want standard input"),
        (["run", "python", "--env", "A", "--", "true"], "has no value"),
        (["run", "python", "--seed", "c0ffee", "--", "true"], "64 hex"),
        (["run", "python", "--seed", "9" * 5000, "--", "true"], "64 hex"),
        (["run", "python", "--seed", "\N{ARABIC-INDIC DIGIT THREE}", "--", "true"], "64 hex"),
        (["run", "python", "--determinism", "wild", "--", "true"], "none, rng or full"),
        (["run", "python", "--timeout", "-1", "--", "true"], "timeout_seconds"),
    ],
)
def test_mistakes_exit_with_2(argv: list[str], message: str, hotbed: Hotbed) -> None:
    """And say what to do."""
    said = hotbed(*argv)

    assert said.code == 2
    assert message in said.err


@pytest.mark.parametrize(
    ("status", "code", "signal", "expected"),
    [
        ("ok", 0, None, 0),
        ("exit", 3, None, 3),
        ("signal", -1, 11, 139),
        ("timeout", -1, 9, 124),
        ("oom", -1, 9, 137),
        ("disk", -1, None, 137),
    ],
)
def test_exit_code_is_what_a_shell_would_say(status: str, code: int, signal: int | None, expected: int) -> None:
    """For every way to end."""
    assert exit_code(status, code, signal) == expected
