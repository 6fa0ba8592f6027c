"""Forks of one interpreter do not share their random numbers, unless they are told to."""

from __future__ import annotations

import os
import random
import tempfile
import uuid
from collections.abc import Callable

import numpy
import pytest

from hotbed.guest.agent.reseed import reseed


def in_fork(work: Callable[[], str]) -> str:
    """What `work` returns in a fork of this process."""
    end, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(out, work().encode())
        os._exit(0)
    os.close(out)
    with os.fdopen(end) as result:
        text = result.read()
    os.waitpid(pid, 0)
    return text


def numbers(entropy: bytes | None) -> Callable[[], str]:
    """A line of random numbers after a reseed."""

    def work() -> str:
        reseed(entropy)
        return f"{random.random()} {numpy.random.random()} {tempfile.__dict__['_name_sequence']}"

    return work


def test_forks_differ() -> None:
    """In every generator that existed before the fork."""
    random.random(), numpy.random.random()
    lines = [in_fork(numbers(None)).split() for _ in range(4)]

    assert len({line[0] for line in lines}) == len({line[1] for line in lines}) == 4


@pytest.mark.parametrize("entropy", [b"", b"x" * 32])
def test_entropy_decides_everything(entropy: bytes) -> None:
    """The same bytes, the same numbers."""
    assert in_fork(numbers(entropy)) == in_fork(numbers(entropy))
    assert in_fork(numbers(entropy)) != in_fork(numbers(entropy + b"y"))


def test_cached_identities_are_forgotten() -> None:
    """uuid1's node and clock, the names of temporary files."""
    uuid.uuid1()
    state = f"{uuid._last_timestamp is not None}"  # type: ignore[attr-defined]  # uuid keeps it so

    def work() -> str:
        reseed()
        return str(uuid.__dict__["_node"])

    assert (state in ("True", "False"), in_fork(work)) == (True, "None")
