"""A candidate's exceptions, rebuilt from names."""

from __future__ import annotations

import unittest
from typing import Any

import pytest

from hotbed.guest.judging import failures


def rebuilt(*names: str, args: tuple[Any, ...] = ("text",), op: str = "run") -> BaseException:
    return failures.rebuild(op, [*names, "BaseException", "object"], list(args), {})


def test_the_nearest_builtin_decides() -> None:
    """A class nobody has seen is caught as what it is derived from, under its own name."""
    found = rebuilt("BadAge", "ValueError", "Exception")

    assert isinstance(found, ValueError) and type(found).__name__ == "BadAge" and str(found) == "text"


@pytest.mark.parametrize("name", ["StopIteration", "StopAsyncIteration", "GeneratorExit", "KeyboardInterrupt"])
def test_what_steers_an_interpreter_is_an_ordinary_error(name: str) -> None:
    """StopIteration out of a call would end `all(map(check, inputs))` early, and look like success."""
    found = rebuilt(name, *(["Exception"] if name.startswith("Stop") else []))

    assert isinstance(found, Exception)
    assert not isinstance(found, (StopIteration, StopAsyncIteration, GeneratorExit, KeyboardInterrupt))


def test_only_asking_for_the_next_item_can_end_an_iteration() -> None:
    """For an iterator of the candidate, the end is its to say."""
    assert isinstance(rebuilt("StopIteration", "Exception", op="next"), StopIteration)


def test_exit_is_both_an_exit_and_an_error() -> None:
    """`except Exception` of a runner keeps it, `assertRaises(SystemExit)` finds it."""
    found = rebuilt("SystemExit", args=(3,))

    assert isinstance(found, SystemExit) and isinstance(found, Exception) and found.code == 3


def test_a_skip_is_no_skip() -> None:
    """The test framework's own signals cannot be sent by name."""
    found = rebuilt("SkipTest", "Exception")

    assert not isinstance(found, unittest.SkipTest)


@pytest.mark.parametrize("name", ["UnicodeDecodeError", "KeyError", "OSError", "ExceptionGroup", "SyntaxError"])
def test_any_builtin_can_be_built_from_any_arguments(name: str) -> None:
    """Constructors that want five arguments get none of them."""
    assert isinstance(rebuilt(name, "ValueError", "Exception", args=(["x"],)), Exception)


def test_known_classes_come_first() -> None:
    """A class that the tests imported is the one they catch."""

    class BadAge(ValueError):
        pass

    found = failures.rebuild("run", ["TooOld", "BadAge", "ValueError"], ["x"], {"BadAge": BadAge})

    assert isinstance(found, BadAge)


def test_an_unreadable_exception_is_described() -> None:
    """Its class may have any `__str__`."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert failures.describe(Mute()) == "(no text)" and failures.describe(ValueError("x")) == "x"


@pytest.mark.parametrize(
    ("op", "error", "may"),
    [
        ("call", ValueError(), True),
        ("call", StopIteration(), False),
        ("next", StopIteration(), True),
        ("call", StopAsyncIteration(), False),
        ("anext", StopAsyncIteration(), True),
        ("call", KeyboardInterrupt(), False),
    ],
)
def test_an_exception_of_the_tests_comes_back_where_it_may(op: str, error: BaseException, may: bool) -> None:
    """One that ends an iteration only out of asking for the next item."""
    assert failures.may_be_raised(op, error) is may
