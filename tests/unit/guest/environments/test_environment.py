"""Authors write environments in a few known ways; each is understood, and what is not is refused with what to do."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from hotbed.guest.environments.environment import BadEnvironment, Environment, Outcome


def stepping(result: Any) -> Environment:
    """An environment whose step returns `result`."""
    return Environment(lambda seed: None, lambda action: result)


def test_the_four_values_of_the_seed_contract() -> None:
    """(observation, reward, done, info)."""
    assert stepping(("seen", 1, True, {"a": 1})).step(0) == Outcome("seen", 1.0, True, False, {"a": 1})


def test_the_five_values_of_gymnasium() -> None:
    """(observation, reward, terminated, truncated, info), in numpy's types too."""
    assert stepping((0, np.float32(0.5), np.bool_(False), True, None)).step(0) == Outcome(0, 0.5, False, True, {})


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "must return .observation, reward, done, info., not NoneType"),
        ((1, 2, 3), "not 3 values"),
        ((0, "good", True, {}), "a number as reward, not str"),
        ((0, float("nan"), True, {}), "a finite reward"),
        ((0, 1.0, "yes", {}), "True or False as done"),
        ((0, 1.0, True, [1]), "a dict as info, not list"),
    ],
)
def test_a_step_that_returns_something_else_is_told_what_to_return(result: Any, message: str) -> None:
    """The author reads this in `details`."""
    with pytest.raises(BadEnvironment, match=message):
        stepping(result).step(0)


def test_reset_takes_its_seed_by_position_by_keyword_or_not_at_all() -> None:
    """def reset(seed), gymnasium's def reset(self, *, seed=None, options=None), def reset()."""

    def by_keyword(*, seed: int | None = None, options: object = None) -> int | None:
        return seed

    resets = (lambda seed: seed, by_keyword, lambda **given: given["seed"], lambda: 7)

    assert [Environment(reset, id).reset(7) for reset in resets] == [(7, {})] * 4


def test_a_gymnasium_reset_gives_its_info_apart() -> None:
    """Only a tuple of two with a dict is taken apart; a list is a task."""
    assert Environment(lambda: ("task", {"hint": 1}), id).reset(0) == ("task", {"hint": 1})
    assert Environment(lambda: ["task", {"hint": 1}], id).reset(0) == (["task", {"hint": 1}], {})


def test_reset_seeds_the_generators_that_nobody_names() -> None:
    """The same seed gives the same episode even where the author just calls random.random()."""
    environment = Environment(lambda seed: (random.random(), float(np.random.rand())), id)

    assert environment.reset(5) == environment.reset(5) != environment.reset(6)


def test_serve_refuses_what_cannot_be_called() -> None:
    """At once, not at the first step."""
    with pytest.raises(BadEnvironment, match="step=.* needs a function, not int"):
        Environment(lambda seed: None, 3)  # type: ignore[arg-type]  # the mistake under test


def test_close_is_optional() -> None:
    """And called when there is one."""
    closed: list[int] = []
    Environment(id, id).close()
    environment = Environment(id, id, lambda: closed.append(1))
    environment.close()

    assert closed == [1]
    assert environment.closes
