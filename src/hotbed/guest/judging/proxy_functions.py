"""Stand-ins for what a candidate's code is called or stepped through: functions, iterators, generators."""

from __future__ import annotations

import types
from typing import Any, Dict, List, Optional, Protocol, Tuple

LIVE = "_hotbed_live"  # (judge's peer, number) in the instance or class dictionary


class Asker(Protocol):
    """What a stand-in needs of the judge's peer."""

    live_operators: bool

    def question(self, op: str, target: Any, args: Tuple[Any, ...], kwargs: Optional[Dict[str, Any]] = None) -> Any:
        """Ask the candidate."""

    def unseal(self, reason: str) -> None:
        """Note that the candidate answered for itself."""

    def told(self, error: BaseException) -> Tuple[List[str], Optional[int], List[Any]]:
        """How the candidate is told of an exception of the tests."""

    def is_named(self, number: int) -> bool:
        """Whether the tests took this class from the candidate by name."""


class Function:
    """A callable of the candidate: one of its names, or something it returned."""

    def __init__(self, peer: Asker, number: Optional[int], name: str) -> None:
        self.__dict__.update({LIVE: (peer, number), "__name__": name, "__qualname__": name})

    def __getattr__(self, name: str) -> Any:
        return self.__dict__[LIVE][0].question("getattr", None, (self, askable(name)))

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[LIVE][0].question("setattr", None, (self, askable(name), value))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        peer, number = self.__dict__[LIVE]
        if number is None:
            return peer.question("run", self.__name__, args, kwargs)
        return peer.question("call", None, (self, *args), kwargs)

    def __repr__(self) -> str:
        return f"<candidate's {self.__name__}>"


def askable(name: str) -> str:
    """A name that may be asked for: not those of Python's own protocols, nor ours."""
    if name.startswith(("__", "_hotbed")):
        raise AttributeError(name)
    return name


def _doc(function: Function) -> Any:
    return function.__dict__[LIVE][0].question("getattr", None, (function, "__doc__"))


setattr(Function, "__doc__", property(_doc))  # noqa: B010  a class statement would take it for its own docstring


class Items:
    """An iterator or generator of the candidate."""

    def __init__(self, peer: Asker, number: int) -> None:
        self.__dict__[LIVE] = (peer, number)

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        return self.__dict__[LIVE][0].question("next", None, (self,))

    def send(self, value: Any) -> Any:
        """Resume the generator with a value."""
        return _send(self, value)

    def throw(self, kind: Any, value: Any = None, trace: Any = None) -> Any:
        """Raise an exception where the generator waits."""
        error = kind if value is None else value
        error = error() if isinstance(error, type) else error
        peer = self.__dict__[LIVE][0]
        return peer.question("throw", None, (self, *peer.told(error)))

    def close(self) -> None:
        """Close the generator."""
        peer = self.__dict__[LIVE][0]
        peer.question("call", None, (peer.question("getattr", None, (self, "close")),))


class Generator(Items):
    """A generator; `isinstance` says so, too."""

    @property  # type: ignore[misc]  # typeshed has it writable
    def __class__(self) -> Any:
        return types.GeneratorType


class AsyncItems(Items):
    """An asynchronous generator: each step runs to its end over there."""

    def __aiter__(self) -> AsyncItems:
        return self

    async def __anext__(self) -> Any:
        return self.__dict__[LIVE][0].question("anext", None, (self,))


def _send(items: Items, value: Any) -> Any:
    peer = items.__dict__[LIVE][0]
    return peer.question("next" if value is None else "send", None, (items,) if value is None else (items, value))
