"""An environment as its author wrote it, called the one way: what `reset` and `step` take and give back.

`reset(seed)` returns the task; `step(action)` returns (observation, reward, done, info), or gymnasium's five
(observation, reward, terminated, truncated, info). gymnasium's own signatures are understood too: `reset(*, seed)`, and
a reset that returns (observation, info) as a tuple.
"""

from __future__ import annotations

import inspect
import math
import random
import sys
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

Reset = Callable[..., Any]
Step = Callable[[Any], Any]
Close = Callable[[], Any]


class BadEnvironment(TypeError):
    """env.py does not keep to the contract; the message says how to."""


class Outcome(NamedTuple):
    """What one step gave."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: Dict[str, Any]


class Environment:
    """The three functions that env.py hands to `serve`."""

    def __init__(self, reset: Reset, step: Step, close: Optional[Close] = None) -> None:
        for name, function in (("reset", reset), ("step", step), ("close", close)):
            if not callable(function) and not (name == "close" and function is None):
                raise BadEnvironment(f"serve({name}=...) needs a function, not {type(function).__name__}")
        self._reset, self._step, self._close = reset, step, close
        self._seed_by = _how_reset_takes_a_seed(reset)

    @property
    def closes(self) -> bool:
        """Whether the author gave a close function."""
        return self._close is not None

    def reset(self, seed: int) -> Tuple[Any, Dict[str, Any]]:
        """Begin an episode: the task, and an info if the author gave one. Seeds the interpreter's own generators."""
        reseed(seed)
        if self._seed_by == "keyword":
            task = self._reset(seed=seed)
        else:
            task = self._reset(seed) if self._seed_by == "position" else self._reset()
        if type(task) is tuple and len(task) == 2 and isinstance(task[1], dict):
            return task[0], task[1]
        return task, {}

    @property
    def step_function(self) -> Step:
        """The author's own function: what it gives is to be settled."""
        return self._step

    def step(self, action: Any) -> Outcome:
        """One step, checked."""
        return self.settled(self._step(action))

    def settled(self, given: Any) -> Outcome:
        """What a step gave, checked."""
        if not isinstance(given, (tuple, list)) or len(given) not in (4, 5):
            what = f"{len(given)} values" if isinstance(given, (tuple, list)) else type(given).__name__
            raise BadEnvironment(f"step(action) must return (observation, reward, done, info), not {what}")
        truncated = given[3] if len(given) == 5 else False
        info = {} if given[-1] is None else given[-1]
        if not isinstance(info, dict):
            raise BadEnvironment(f"step(action) must return a dict as info, not {type(info).__name__}")
        return Outcome(given[0], _number(given[1]), _truth(given[2]), _truth(truncated), info)

    def close(self) -> None:
        """Let the author clean up."""
        if self._close is not None:
            self._close()


def reseed(seed: int) -> None:
    """Seed the generators that a program uses without naming one: `random`, and numpy's when it is loaded."""
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        numpy.random.seed(seed % (1 << 32))


def _number(reward: Any) -> float:
    try:
        number = float(reward)
    except (TypeError, ValueError):
        raise BadEnvironment(f"step(action) must return a number as reward, not {type(reward).__name__}") from None
    if not math.isfinite(number):
        raise BadEnvironment(f"step(action) must return a finite reward, not {number}")
    return number


def _truth(done: Any) -> bool:
    if type(done) is bool:
        return done
    if type(done).__name__ in ("bool_", "bool", "int") and done in (0, 1):
        return bool(done)
    raise BadEnvironment(f"step(action) must return True or False as done, not {done!r}"[:200])


def _how_reset_takes_a_seed(reset: Reset) -> str:
    try:
        parameters = list(inspect.signature(reset).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return "position"
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL):
            return "position"
        if parameter.name == "seed" or parameter.kind is parameter.VAR_KEYWORD:
            return "keyword"
    return "none"
