"""hotbed spec check, over programs: those need no judge, so the fake node grades them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotbed.cli.commands.spec import empty_of, hasty, read_gold
from hotbed.grading import CallLimits, StdioReward
from tests.unit.cli.conftest import Hotbed

CASES = [{"stdin": "2", "stdout": "4"}, {"stdin": "5", "stdout": "25"}]
GOLD = "n = int(input())\nif n > 100:\n    n = 100\nprint(n * n)\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Arguments that name a spec and its gold solution."""
    (tmp_path / "spec.json").write_text(json.dumps({"type": "stdio", "cases": CASES}))
    (tmp_path / "gold.py").write_text(GOLD)
    return ["--spec", str(tmp_path / "spec.json"), "--gold", str(tmp_path / "gold.py"), "--n", "2"]


@pytest.fixture(autouse=True)
def unpinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake backend pins nothing, so the seeded runs are asked for without a level."""
    from hotbed.sdk import grading

    monkeypatch.setattr(grading, "_seeds", lambda codes, *rest: None)


def test_a_sound_spec(hotbed: Hotbed, files: list[str]) -> None:
    """Exit code 0, and what it rests on."""
    said = hotbed("spec", "check", *files, "--json", "--mutants", "4")

    assert said.code == 0, said.out
    assert (said.json["gold_full"], said.json["empty_reward"], said.json["repeatable"]) == (2, 0.0, True)
    assert 0 < said.json["mutants_caught"] <= said.json["mutants"] <= 4


def test_a_spec_that_pays_anything_is_not_sound(hotbed: Hotbed, files: list[str], tmp_path: Path) -> None:
    """Exit code 1, with every problem by name."""
    (tmp_path / "spec.json").write_text(json.dumps({"type": "stdio", "cases": [{"stdin": "", "stdout": ""}]}))
    said = hotbed("spec", "check", *files, "--mutants", "2")

    assert said.code == 1
    assert "problem: the gold solution scored 1.0 in 0 of 2 runs" in said.out
    assert "problem: an empty candidate scored 1" in said.out
    assert "not sound" in said.out


def test_arguments_are_checked(hotbed: Hotbed, files: list[str], tmp_path: Path) -> None:
    """Exit code 2."""
    assert hotbed("spec", "check", *files[:-1], "0").code == 2
    assert hotbed("spec", "check", *files, "--mutants", "-1").code == 2
    assert hotbed("spec", "check", *files[:2], "--gold", str(tmp_path / "none")).code == 2


def test_gold_may_be_a_folder(tmp_path: Path) -> None:
    """Its files by their names there; an empty candidate has the same ones, empty."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "a.py").write_text("x")
    (tmp_path / "main.py").write_text("y")
    gold = read_gold(str(tmp_path))

    assert gold == {"main.py": "y", "pkg/a.py": "x"}
    assert empty_of(gold) == {"main.py": "", "pkg/a.py": ""}
    assert empty_of("x") == ""


def test_mutants_get_little_time() -> None:
    """Never more than the spec gives."""
    spec = StdioReward(cases=CASES, limits=CallLimits(cpu_s=30))

    assert (hasty(spec).limits.cpu_s, hasty(spec).limits.candidate_wall_s) == (2.0, 10.0)
    assert hasty(StdioReward(cases=CASES, limits=CallLimits(cpu_s=0.5))).limits.cpu_s == 0.5
