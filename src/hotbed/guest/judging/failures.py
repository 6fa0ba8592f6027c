"""A candidate's exceptions as the tests see them.

A failure arrives as class names along its MRO and plain arguments. The first name that the judge knows decides: a class
of the candidate that the tests imported, else a builtin; so `except ValueError` and `assertRaises(ValueError)` work for
a subclass nobody has seen. Names never select anything but an ordinary exception: a candidate that could raise
`StopIteration` out of a call would end a `map` early and skip the checks after it, and `SkipTest` would skip a test.
"""

from __future__ import annotations

import builtins
from typing import Any, Dict, List, Mapping, Tuple, Type


class CandidateError(Exception):
    """The candidate raised what is no `Exception` at all."""


class CandidateExit(SystemExit, CandidateError):
    """The candidate called exit. A `SystemExit` for tests that expect one, an `Exception` for everybody else."""


_FORBIDDEN = frozenset(("StopIteration", "StopAsyncIteration", "GeneratorExit", "KeyboardInterrupt", "BaseException"))
_cache: Dict[Tuple[str, type], Type[BaseException]] = {}


def rebuild(op: str, names: List[str], args: List[Any], known: Mapping[str, Type[BaseException]]) -> BaseException:
    """The exception to raise for a failure. Only asking for the next item may say that there is none."""
    if op in ("next", "send") and names[0] == "StopIteration":
        return StopIteration(*args[:1])
    for name in names:
        base = known.get(name) or _builtin(name)
        if base is not None:
            return _instance(base if name == names[0] else _subclass(names[0], base), args)
    if "SystemExit" in names:
        return CandidateExit(*args)
    return CandidateError(": ".join([names[0][:80], *map(str, args)]))


def _builtin(name: str) -> Any:
    found = getattr(builtins, name, None)
    ordinary = isinstance(found, type) and issubclass(found, Exception) and name not in _FORBIDDEN
    return found if ordinary and name != "ExceptionGroup" else None


def _subclass(name: str, base: Type[BaseException]) -> Type[BaseException]:
    """A class of the candidate's name below the one that is known, so that messages read as expected."""
    key = (name[:80], base)
    if key not in _cache:
        if len(_cache) > 1000:
            _cache.clear()
        _cache[key] = type(key[0].replace("\0", ""), (base,), {})
    return _cache[key]


def _instance(kind: Type[BaseException], args: List[Any]) -> BaseException:
    try:
        return kind(*args)
    except Exception:  # noqa: BLE001  a constructor may want other arguments than `.args`; the tests' own may raise anything
        plain = type(kind.__name__, (kind,), {"__init__": lambda self, *args: None, "__str__": _first_argument})
        error: BaseException = plain.__new__(plain, *args)
        error.args = tuple(args)
        return error


def _first_argument(error: BaseException) -> str:
    return str(error.args[0]) if error.args else ""
