"""The tests' objects and streams, seen from the candidate."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any
from unittest import mock

import pytest

from hotbed.guest.judging import borrowed
from tests.support.judging import asked

CODE = """
import sys
def call(f, *args): return f(*args)
def total(xs): return sum(x.price for x in sorted(xs))
def read(f): return f.readline() + f.read() + "".join(f)
def show(text): print(text); print(text, file=sys.stderr)
def ask(): return input("? ") + "|" + sys.stdin.readline() + "|" + sys.stdin.read(2) + "|" + "".join(sys.stdin)
def plus(x): return (x + 1, 1 + x, x * 2, -x, repr(x), hash(x) == hash(x), x == x, x[0], 5 in x, bool(x), len(x))
def change(x): x.a = 5; del x.b; x["k"] = 1; del x["j"]; return x.a
def secret(x): return x._secret
def within(x):
    with x as inside: return inside
"""


class Item:
    def __init__(self, price: int) -> None:
        self.price = price

    def __lt__(self, other: Any) -> bool:
        return bool(self.price < other.price)


class Number(list[int]):
    """Not plain data, for it is an object of the tests with a class of their own."""


def run(peer: Any, name: str, *args: Any) -> Any:
    return peer.question("run", name, args)


def test_objects_of_the_tests_behave() -> None:
    """Mocks are called, files are read, items are sorted by their own rule."""
    with asked(CODE) as peer:
        called = mock.Mock(return_value=7)

        assert run(peer, "call", called, 1, "a") == 7
        called.assert_called_once_with(1, "a")
        assert run(peer, "total", [Item(3), Item(1)]) == 4
        assert run(peer, "read", io.StringIO("a\nb\nc")) == "a\nb\nc"
        with pytest.raises(AttributeError):
            run(peer, "secret", mock.Mock(_secret=1))


def test_operators_ask_the_tests_object() -> None:
    """Reflected ones as well."""
    thing = mock.MagicMock()
    thing.__add__.return_value, thing.__radd__.return_value, thing.__mul__.return_value = 1, 2, 3
    thing.__neg__.return_value, thing.__getitem__.return_value, thing.__contains__.return_value = 4, 5, True
    thing.__len__.return_value = 6
    thing.b, thing.__enter__.return_value = 1, 8
    with asked(CODE) as peer:
        assert run(peer, "plus", thing)[:4] == (1, 2, 3, 4)
        assert run(peer, "plus", thing)[5:] == (True, True, 5, True, True, 6)
        assert run(peer, "change", thing) == 5 and run(peer, "within", thing) == 8

    assert not hasattr(thing, "b")
    thing.__setitem__.assert_called_once_with("k", 1)
    thing.__delitem__.assert_called_once_with("j")


def test_what_is_printed_arrives_where_the_tests_look() -> None:
    """And only while they do."""
    with asked(CODE) as peer:
        run(peer, "show", "before")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            run(peer, "show", "one")
            run(peer, "show", "two")
        run(peer, "show", "after")

    assert (out.getvalue(), err.getvalue()) == ("one\ntwo\n", "one\ntwo\n")


def test_input_and_stdin_are_the_tests() -> None:
    """Line by line, whatever the program reads with."""
    with asked(CODE) as peer, mock.patch("sys.stdin", io.StringIO("a\nbcd\ne\n")):
        with mock.patch("builtins.input", lambda prompt: f"[{prompt}]"):
            assert run(peer, "ask") == "[? ]|a\n|bc|d\ne\n"
        sys.stdin.seek(0)
        assert run(peer, "ask") == "a|bcd\n|e\n|"


def test_a_stream_that_was_closed_is_given_up() -> None:
    """The program may close what it was given."""
    found = borrowed.Surroundings()
    told: list[str] = []
    try:
        found.change({"stdout": told.append})
        sys.stdout.close()
        found.deliver()
    finally:
        found.change({})

    assert told == []
