"""Hooks of two modules are held back while a template imports, and made up for where a program will run."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hotbed.guest import forkhooks

Hooks = list[dict[str, Callable[[], Any]]]


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hooks]:
    """What reaches the interpreter; nothing registered in a test outlives it."""
    reached: Hooks = []
    monkeypatch.setattr(forkhooks, "_register", lambda **hooks: reached.append(hooks))
    monkeypatch.setattr(forkhooks, "_held", [])
    monkeypatch.setattr(forkhooks, "_owner", [])
    monkeypatch.setattr(forkhooks, "_foreign", [])
    monkeypatch.setattr(forkhooks, "dispensable", False)
    monkeypatch.setattr(os, "register_at_fork", os.register_at_fork)
    yield reached


def hook_of(module: str) -> Callable[[], None]:
    """A function that says it belongs to a module."""

    def hook() -> None:
        called.append(module)

    called: list[str] = []
    hook.__module__ = module
    hook.called = called  # type: ignore[attr-defined]  # noted on the function itself
    return hook


def test_hooks_of_threading_and_random_are_held_and_others_are_not(registered: Hooks) -> None:
    """We know these two; of any other module we do not know what it needs."""
    forkhooks.hold()
    os.register_at_fork(after_in_child=hook_of("threading"))
    os.register_at_fork(after_in_child=hook_of("somebody"))

    assert [hooks["after_in_child"].__module__ for hooks in registered] == ["somebody"]


def test_bound_method_belongs_to_the_module_of_its_object(registered: Hooks) -> None:
    """`random` registers the seed method of its hidden instance."""
    forkhooks.hold()
    os.register_at_fork(after_in_child=random.Random(1).seed)

    assert registered == []


def test_release_registers_them_and_reseeds_once(registered: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's own forks behave as usual, and its random numbers are its own."""
    seed, threads = hook_of("random"), hook_of("threading")
    forkhooks.hold()
    os.register_at_fork(after_in_child=threads)
    os.register_at_fork(after_in_child=seed)
    monkeypatch.setattr(forkhooks, "_owner", [os.getpid() + 1])  # as after a fork

    forkhooks.release()
    forkhooks.release()

    assert [hooks["after_in_child"] for hooks in registered] == [threads, seed]
    assert seed.called == ["random"] and threads.called == []  # type: ignore[attr-defined]  # noted on the function itself


def test_release_does_nothing_in_the_template_itself(registered: Hooks) -> None:
    """A rehearsal runs the same code there."""
    forkhooks.hold()
    os.register_at_fork(after_in_child=hook_of("random"))

    forkhooks.release()

    assert registered == []


def test_stop_registers_as_usual_again(registered: Hooks) -> None:
    """What is imported later is the program's affair."""
    forkhooks.hold()
    forkhooks.stop()
    os.register_at_fork(after_in_child=hook_of("threading"))

    assert len(registered) == 1


@pytest.mark.parametrize(("module", "dispensable"), [("threading", True), ("logging", True), ("somebody", False)])
def test_forks_may_skip_hooks_that_were_all_seen_and_only_free_locks(
    registered: Hooks, module: str, dispensable: bool
) -> None:
    """One of anybody else has to run, and so has one that nobody watched for."""
    assert not forkhooks.dispensable
    forkhooks.hold()
    os.register_at_fork(after_in_child=hook_of(module))
    forkhooks.stop()

    assert forkhooks.dispensable == dispensable
