"""Functions, iterators and generators of a candidate."""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.judging import asked

CODE = """
import functools
def solve(x):
    "Doc."
    return x
solve.count = 3
def gen():
    got = yield 1
    try: yield got
    except KeyError as error: yield error.args[0]
    return 9
async def agen(n):
    for i in range(n): yield i
class Count:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if not self.n: raise StopIteration
        self.n -= 1
        return self.n
def count(n): return Count(n)
"""


def run(peer: Any, name: str, *args: Any) -> Any:
    return peer.question("run", name, args)


def test_a_function_has_its_attributes() -> None:
    """Its text, and what it or a test has stored in it; never those of Python's or our own protocols."""
    with asked(CODE) as peer:
        found: Any = peer.export("solve")
        found.count = 4

        assert (found.__name__, found.__doc__, found.count, found(2)) == ("solve", "Doc.", 4, 2)
        for name in ("__code__", "__globals__", "__wrapped__", "_hotbed_fixture"):
            assert not hasattr(found, name)


def test_a_generator_is_resumed_in_every_way() -> None:
    """And its value comes with its end."""
    with asked(CODE) as peer:
        found = run(peer, "gen")
        assert inspect.isgenerator(run(peer, "gen"))
        assert isinstance(run(peer, "gen"), Iterator) and type(run(peer, "gen")) is not types.GeneratorType
        assert (next(found), found.send(5), found.throw(KeyError("k"))) == (1, 5, "k")
        with pytest.raises(StopIteration) as ended:
            next(found)
        assert ended.value.value == 9


def test_an_asynchronous_generator_is_one() -> None:
    """Step by step."""

    async def collect() -> list[int]:
        with asked(CODE) as peer:
            return [item async for item in run(peer, "agen", 3)]

    assert asyncio.run(collect()) == [0, 1, 2]


def test_an_iterator_of_its_own_class_is_an_instance() -> None:
    """With attributes, and ended like any other."""
    with asked(CODE) as peer:
        found = run(peer, "count", 3)

        assert found.n == 3 and list(found) == [2, 1, 0] and not inspect.isgenerator(found)
