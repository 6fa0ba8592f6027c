"""hotbed demo."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.cli.commands import demo
from hotbed.cli.commands.demo import percentiles, program
from tests.unit.cli.conftest import Hotbed

PROBLEM = {
    "prompt": "def add(a, b):\n",
    "canonical_solution": "    return a + b\n",
    "test": "def check(f):\n    assert f(1, 2) == 3\n",
    "entry_point": "add",
}
WRONG = {**PROBLEM, "canonical_solution": "    return a - b\n"}
EMPTY = {**PROBLEM, "test": "def check(f):\n    pass\n"}


GRADED: dict[str, Any] = {
    "as_expected": True,
    "solutions_paid": 1,
    "broken_unpaid": 1,
    "problems": 1,
    "sealed": 2,
    "candidates": 2,
    "candidates_per_s": 9.0,
    "hacks": [{"hack": "leaves early", "exit_code_pays": 1.0, "sealed_pays": 0.0}],
    "hacks_paid_by_exit_code": 1,
    "hacks_paid_sealed": 0,
}


@pytest.fixture(autouse=True)
def graded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Grading needs real sandboxes; here it went as it should. What is in this dictionary is what the demo hears."""
    found = dict(GRADED)
    monkeypatch.setattr(demo, "play_grading", lambda problems, **options: {})
    monkeypatch.setattr(demo, "play_hacks", lambda problem, **options: [])
    monkeypatch.setattr(demo, "summarize_grading", lambda graded, hacks: found)
    return found


def show(monkeypatch: pytest.MonkeyPatch, hotbed: Hotbed, *problems: dict[str, str]) -> Any:
    """The demo over these problems."""
    monkeypatch.setattr(demo, "load_problems", lambda: list(problems))
    return hotbed("demo", "--json", "--threads", "2")


def test_solutions_pass_and_broken_ones_fail(monkeypatch: pytest.MonkeyPatch, hotbed: Hotbed) -> None:
    """And nothing is left over."""
    said = show(monkeypatch, hotbed, PROBLEM, PROBLEM, PROBLEM)

    assert (said.json["passed"], said.json["failed_when_broken"], said.json["total"]) == (3, 3, 3)
    assert said.json["left_over"]["sandboxes"] == 0
    assert said.json["isolation"] == ["fake"]


@pytest.mark.parametrize("bad", [WRONG, EMPTY], ids=["a wrong solution", "a test that tests nothing"])
def test_surprise_is_a_no(bad: dict[str, str], monkeypatch: pytest.MonkeyPatch, hotbed: Hotbed) -> None:
    """Either a solution that fails or a broken one that passes."""
    said = show(monkeypatch, hotbed, PROBLEM, bad)

    assert (said.code, said.json["as_expected"]) == (1, False)


def test_a_paid_hack_is_a_no(monkeypatch: pytest.MonkeyPatch, hotbed: Hotbed, graded: dict[str, Any]) -> None:
    """Whatever the rollouts came to."""
    graded.update(as_expected=False, hacks_paid_sealed=1)
    said = show(monkeypatch, hotbed, PROBLEM)

    assert (said.code, said.json["as_expected"], said.json["passed"]) == (1, False, 1)


def test_person_sees_the_numbers(monkeypatch: pytest.MonkeyPatch, hotbed: Hotbed) -> None:
    """Each on its line."""
    monkeypatch.setattr(demo, "load_problems", lambda: [PROBLEM])
    said = hotbed("demo")

    hacks, numbers = said.out.split("\n\n")
    assert "leaves early" in hacks
    assert [line.split()[0] for line in numbers.splitlines()] == [
        "solutions",
        "broken",
        "speed",
        "fork",
        "total",
        "memory",
        "graded",
        "grading",
        "hacks",
        "isolation",
        "left",
    ]
    assert "1/1 passed" in said.out


def test_package_ships_164_problems() -> None:
    """Each a program that ends by running its test."""
    problems = demo.load_problems()

    assert len(problems) == 164
    assert all(program(problem).rstrip().endswith(f"check({problem['entry_point']})") for problem in problems)


def test_percentiles_are_of_the_values() -> None:
    """The middle and the slow end."""
    assert percentiles([float(value) for value in range(100)]) == {"p50": 50.0, "p99": 99.0}
    assert percentiles([1.0]) == {"p50": 1.0, "p99": 1.0}
