"""The tests' objects as a candidate sees them, and the tests' streams in place of its own.

Each operation asks the judge, which decides what is allowed (see `callbacks`). Where a test has put something in place
of `sys.stdout`, `sys.stdin` or `input` for a while, the candidate's process has it, too, for the calls in that while.
"""

from __future__ import annotations

import builtins
import io
import sys
from typing import Any, Callable, Dict

from . import calls

_OPERATORS = (
    "lt le gt ge add radd sub rsub mul rmul truediv floordiv mod pow neg abs int float index enter exit".split()
)


class Borrowed:
    """Something of the tests, seen from the candidate."""

    def __init__(self, peer: calls.Peer, number: int) -> None:
        self.__dict__["_peer"] = peer
        self.__dict__["_number"] = number

    def _hotbed_ask(self, op: str, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_peer"].ask(op, self.__dict__["_number"], args, kwargs)


class Function(Borrowed):
    """What can be called and nothing else."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._hotbed_ask("call", *args, **kwargs)


class Iterator(Borrowed):
    """What gives one item after another."""

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        return self._hotbed_ask("next")


class Object(Borrowed):
    """Public attributes and methods only: the tests' other objects stay out of reach."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._hotbed_ask("getattr", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._hotbed_ask("setattr", name, value)

    def __delattr__(self, name: str) -> None:
        self._hotbed_ask("delattr", name)

    def __len__(self) -> int:
        return int(self._hotbed_ask("len"))

    def __getitem__(self, key: Any) -> Any:
        return self._hotbed_ask("getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._hotbed_ask("setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        self._hotbed_ask("delitem", key)

    def __iter__(self) -> Any:
        return self._hotbed_ask("iter")

    def __next__(self) -> Any:
        return self._hotbed_ask("next")

    def __contains__(self, key: Any) -> bool:
        return bool(self._hotbed_ask("contains", key))

    def __bool__(self) -> bool:
        return bool(self._hotbed_ask("bool"))

    def __str__(self) -> str:
        return str(self._hotbed_ask("str"))

    def __repr__(self) -> str:
        return str(self._hotbed_ask("repr"))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Object) and other.__dict__["_number"] == self.__dict__["_number"]
        return same or bool(self._hotbed_ask("eq", other))

    def __hash__(self) -> int:
        return int(self._hotbed_ask("hash"))


class Callable_(Object):
    """An object that can also be called: a mock, say."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._hotbed_ask("call", *args, **kwargs)


def _operator(op: str) -> Callable[..., Any]:
    def operation(self: Any, *args: Any) -> Any:
        return self._hotbed_ask(op, *args)

    return operation


for _op in _OPERATORS:
    setattr(Object, f"__{_op}__", _operator(_op))

KINDS: Dict[str, Callable[[calls.Peer, int], Any]] = {"f": Function, "i": Iterator, "o": Object, "k": Callable_}


class _Input(io.TextIOBase):
    """The tests' stdin, line by line."""

    def __init__(self, readline: Callable[[], str]) -> None:
        self._readline = readline
        self._rest = ""

    def readable(self) -> bool:
        return True

    def readline(self, size: Any = -1) -> str:  # type: ignore[override]  # a whole line, as text streams give it
        found = self._rest or self._readline()
        cut = len(found) if size is None or size < 0 else size
        self._rest = found[cut:]
        return found[:cut]

    def read(self, size: Any = -1) -> str:
        text = "".join(iter(self.readline, ""))
        cut = len(text) if size is None or size < 0 else size
        self._rest = text[cut:]
        return text[:cut]


class Surroundings:
    """What a test has put in place of this process's streams and of `input`."""

    def __init__(self) -> None:
        self._own = {"stdout": sys.stdout, "stderr": sys.stderr, "stdin": sys.stdin}
        self._input = builtins.input
        self._kept: Dict[str, Any] = {}

    def change(self, now: Dict[str, Any]) -> None:
        """Have exactly these: functions that write, read a line, or stand for `input`."""
        self._kept.clear()
        for name, own in self._own.items():
            setattr(sys, name, own)
        builtins.input = now.pop("input", self._input)
        for name, function in now.items():
            if name == "stdin":
                sys.stdin = _Input(function)
            elif name in self._own:
                self._kept[name] = function, io.StringIO()
                setattr(sys, name, self._kept[name][1])

    def deliver(self) -> None:
        """Hand over what was written since the last time."""
        for write, kept in self._kept.values():
            if not kept.closed and kept.tell():
                text = kept.getvalue()
                kept.seek(0)
                kept.truncate()
                write(text)
