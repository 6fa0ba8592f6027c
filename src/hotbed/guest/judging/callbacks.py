"""What a candidate may do with the objects that a test handed it.

Functions can be called, iterators advanced; other objects offer the operators of their class. Which of them all, and
which of their attributes, is `offered`'s to say.
"""

from __future__ import annotations

import builtins
import functools
import io
import operator
import sys
import types
from typing import Any, Callable, Dict

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial, type)
WRITTEN_LIMIT = 16 << 20  # characters that a candidate may write into a stream of the tests
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that some Python statement has made


def kind(value: Any) -> str:
    """ "f" a function, "i" an iterator, "k" an object that can be called, "o" any other."""
    if isinstance(value, _FUNCTIONS):
        return "f"
    of = type(value)
    if isinstance(value, types.GeneratorType) or (hasattr(of, "__next__") and not _has_more(value)):
        return "i"
    return "k" if callable(value) else "o"


def _has_more(value: Any) -> bool:
    """Whether an iterator is more than one: a file, or an instance of a class of the tests."""
    return isinstance(value, io.IOBase) or bool(type(value).__flags__ & _HEAP_TYPE)


_OBJECT: Dict[str, Callable[..., Any]] = {
    "radd": lambda value, other: other + value,
    "rsub": lambda value, other: other - value,
    "rmul": lambda value, other: other * value,
    "enter": lambda value: type(value).__enter__(value),
    "exit": lambda value, *error: type(value).__exit__(value, None, None, None),
}
_OBJECT.update({f.__name__: f for f in (len, iter, next, bool, str, repr, hash, abs, int, float)})
_OBJECT.update(
    {
        name: getattr(operator, name)
        for name in (
            "getitem setitem delitem contains eq lt le gt ge add sub mul truediv floordiv mod pow neg index"
        ).split()
    }
)
ALLOWED: Dict[str, Dict[str, Callable[..., Any]]] = {
    "f": {"call": lambda value, *args, **kwargs: value(*args, **kwargs)},
    "i": {"next": next},
    "o": _OBJECT,
    "k": {**_OBJECT, "call": lambda value, *args, **kwargs: value(*args, **kwargs)},
}


def _capped(write: Callable[[str], Any]) -> Callable[[str], None]:
    """A writer that takes only so much: it ends up in the judge's memory."""
    room = [WRITTEN_LIMIT]

    def capped(text: str) -> None:
        room[0] -= len(text)
        if room[0] < 0:
            raise ValueError("more output than is kept")
        write(text)

    return capped


class Surroundings:
    """The tests' streams and `input`: which of them a test has put something else in place of."""

    def __init__(self) -> None:
        self._usual = (sys.stdout, sys.stderr, sys.stdin, builtins.input)
        self._last = self._usual

    def changed(self) -> bool:
        """Whether they are not what they were when this was asked last."""
        now = (sys.stdout, sys.stderr, sys.stdin, builtins.input)
        last, self._last = self._last, now
        return any(a is not b for a, b in zip(now, last))

    def replaced(self) -> Dict[str, Any]:
        """What a candidate is given for each that is replaced: a function that writes, reads a line, or is `input`."""
        found: Dict[str, Any] = {}
        for index, (name, method) in enumerate((("stdout", "write"), ("stderr", "write"), ("stdin", "readline"))):
            if self._last[index] is not self._usual[index] and self._last[index] is not None:
                function = getattr(self._last[index], method)
                found[name] = function if method == "readline" else _capped(function)
        if self._last[3] is not self._usual[3]:
            found["input"] = self._last[3]
        return found
