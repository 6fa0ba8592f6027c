"""What a caller may give as actions, masks and workers. Each is checked before anything is run."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from hotbed.errors import InvalidRequest, WrongActionCount


def counted(actions: Any, count: int) -> list[Any]:
    """As many actions as there are workers to take them."""
    if isinstance(actions, (str, bytes, dict)) or not hasattr(actions, "__len__"):
        raise WrongActionCount(
            f"actions must be a list with one action for each of {count} workers, not {type(actions).__name__}",
            hint="with one worker it is a list of one: step([action])",
        )
    if len(actions) != count:
        raise WrongActionCount(f"{len(actions)} actions for {count} workers", hint="one action for each, in order")
    return list(actions.tolist() if getattr(actions, "ndim", 0) == 1 else actions)


def masked(mask: Iterable[Any] | None, n: int) -> list[int]:
    """The workers of a mask; all without one."""
    if mask is None:
        return list(range(n))
    try:
        chosen = [bool(one) for one in mask]
    except (TypeError, ValueError):
        raise InvalidRequest(f"the mask is a list of {n} truth values, not {mask!r:.60}") from None
    if len(chosen) != n:
        raise InvalidRequest(f"the mask has {len(chosen)} entries for {n} workers")
    return [index for index, one in enumerate(chosen) if one]


def named(workers: Sequence[int] | None, n: int) -> list[int]:
    """The workers of a list; all without one."""
    if workers is None:
        return list(range(n))
    try:
        given = [operator.index(worker) for worker in workers]
    except TypeError:
        raise InvalidRequest(f"workers are a list of numbers from 0 to {n - 1}, not {workers!r:.60}") from None
    if len(set(given)) != len(given) or any(not 0 <= worker < n for worker in given):
        raise InvalidRequest(f"workers are different numbers from 0 to {n - 1}, not {brief(given)}")
    return given


def brief(indices: Sequence[int]) -> str:
    """A list of workers that fits into a message."""
    shown = ", ".join(map(str, indices[:8]))
    return f"{shown}, ... ({len(indices)} in all)" if len(indices) > 8 else shown
