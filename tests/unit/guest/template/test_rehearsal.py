"""A rehearsal runs the path of a fork many times and leaves no trace in the process that rehearses."""

from __future__ import annotations

import os
import resource
import threading
from typing import Any

import pytest

from hotbed.guest import kernel
from hotbed.guest.template import rehearsal


class FakeNetwork:
    """A lease."""

    fd = 7


class FakePool:
    """Counts what is out."""

    def __init__(self) -> None:
        self.out = 0

    def lease(self) -> FakeNetwork:
        """One more."""
        self.out += 1
        return FakeNetwork()

    def give_back(self, network: object) -> None:
        """One less."""
        self.out -= 1


class FakeNewborn:
    """Counts its rehearsals; the last one fails."""

    def __init__(self, fail_at: int = 0) -> None:
        self.orders: list[Any] = []
        self._fail_at = fail_at

    def rehearse(self, order: Any, network: int, sock: int) -> None:
        """Note it."""
        self.orders.append(order)
        if len(self.orders) == self._fail_at:
            raise OSError("refused")


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which kinds of namespace were entered."""
    kinds: list[int] = []
    monkeypatch.setattr(kernel, "setns", lambda fd, kind: kinds.append(kind))
    monkeypatch.setattr(os, "chdir", lambda path: None)
    return kinds


def test_every_round_comes_home(entered: list[int]) -> None:
    """Also the one that fails; and what was leased is given back."""
    child, pool = FakeNewborn(), FakePool()

    rehearsal.run(child, pool, 0, 3)  # type: ignore[arg-type]  # fakes

    assert len(child.orders) == 3 and pool.out == 0
    assert len(entered) == 5 * 3


def test_failing_round_comes_home_too(entered: list[int]) -> None:
    """A template that stays in a half-made sandbox would fork from there."""
    with pytest.raises(OSError, match="refused"):
        rehearsal.run(FakeNewborn(fail_at=2), FakePool(), 0, 3)  # type: ignore[arg-type]  # fakes

    assert len(entered) == 10


def test_rehearsed_limits_are_the_templates_own(entered: list[int]) -> None:
    """A hard limit that is lowered cannot be raised again."""
    child = FakeNewborn()

    rehearsal.run(child, FakePool(), 0, 3)  # type: ignore[arg-type]  # fakes

    limits = dict(child.orders[0][3][2])
    assert limits[resource.RLIMIT_NOFILE] == resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert limits[resource.RLIMIT_NPROC] == resource.getrlimit(resource.RLIMIT_NPROC)[1]


def test_forks_are_rehearsed_as_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The template's own part is as hot as the child's.

    The interpreter's hook forgets every thread but the caller's: true in a template, which has one, and not here.
    """
    forks: list[None] = []
    renewed: list[None] = []
    monkeypatch.setattr(threading, "_after_fork", lambda: renewed.append(None))

    rehearsal.run_forks(lambda: forks.append(None), 4)

    assert len(forks) == len(renewed) == 4
