"""Source that a spec carries."""

from __future__ import annotations

import pytest

from hotbed.errors import InvalidSpec
from hotbed.grading.sources import check_source, function_name, source_of


def doubled(x: int) -> int:
    import math

    return int(math.floor(x)) * 2


def uses_module(x: int) -> object:
    return pytest.approx(x)


def test_text_and_functions() -> None:
    """A function travels as its source."""
    assert source_of("f", "x = 1") == ("x = 1", "")
    source, name = source_of("f", doubled)
    assert name == "doubled" and source.startswith("def doubled")


def test_what_cannot_travel_is_refused() -> None:
    """Lambdas, builtins, closures, what uses its module."""
    captured = 3

    def closure(x: int) -> int:
        return x + captured

    for value, message in (
        (lambda x: x, "lambda"),
        (len, "plain function"),
        (closure, "around"),
        (uses_module, "pytest"),
    ):
        with pytest.raises(InvalidSpec, match=message):
            source_of("reference", value)


def test_which_function_of_a_source() -> None:
    """A wanted name, else the only one."""
    assert function_name("g", "def a(): pass\ndef b(): pass", ("b",)) == "b"
    assert function_name("g", "def a(): pass", ("b",)) == "a"
    with pytest.raises(InvalidSpec, match="a, c"):
        function_name("g", "def a(): pass\ndef c(): pass", ("b",))
    with pytest.raises(InvalidSpec, match="not valid Python"):
        check_source("g", "def")
