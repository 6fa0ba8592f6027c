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


def test_person_sees_the_numbers(monkeypatch: pytest.MonkeyPatch, hotbed: Hotbed) -> None:
    """Each on its line."""
    monkeypatch.setattr(demo, "load_problems", lambda: [PROBLEM])
    said = hotbed("demo")

    assert [line.split()[0] for line in said.out.splitlines()] == [
        "solutions",
        "broken",
        "speed",
        "fork",
        "total",
        "memory",
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
