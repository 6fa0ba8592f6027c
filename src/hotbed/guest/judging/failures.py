"""A candidate's exceptions as the tests see them.

A failure arrives as class names along its MRO and plain arguments. The first name that the judge knows decides: a class
of the candidate that the tests imported, else a builtin; so `except ValueError` and `assertRaises(ValueError)` work for
a subclass nobody has seen. Names never select anything but an ordinary exception: a candidate that could raise
`StopIteration` out of a call would end a `map` early and skip the checks after it, and `SkipTest` would skip a test.
"""

from __future__ import annotations

import builtins
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type

from . import plain

FAILURE_LIMIT = 10_000  # bytes of what an exception holds


class CandidateError(Exception):
    """The candidate raised what is no `Exception` at all."""


class CandidateExit(SystemExit, CandidateError):
    """The candidate called exit. A `SystemExit` for tests that expect one, an `Exception` for everybody else."""


_FORBIDDEN = frozenset(("StopIteration", "StopAsyncIteration", "GeneratorExit", "KeyboardInterrupt", "BaseException"))
_cache: Dict[Tuple[str, type], Type[BaseException]] = {}


def rebuild(
    op: str,
    names: List[str],
    args: List[Any],
    known: Mapping[str, Type[BaseException]],
    attributes: Optional[Mapping[str, Any]] = None,
) -> BaseException:
    """The exception to raise for a failure. Only asking for the next item may say that there is none."""
    if op in ("next", "send", "throw") and names[0] == "StopIteration":
        return StopIteration(*args[:1])
    if op == "anext" and names[0] == "StopAsyncIteration":
        return StopAsyncIteration()
    error = _ordinary(names, args, known)
    for name, value in (attributes or {}).items():
        if name.isidentifier() and not name.startswith("_") and not hasattr(error, name):
            setattr(error, name, value)
    return error


def may_be_raised(op: str, error: BaseException) -> bool:
    """Whether an exception of the tests' own, which the candidate was told of, may come back to them out of this."""
    if isinstance(error, StopIteration):
        return op in ("next", "send", "throw")
    if isinstance(error, StopAsyncIteration):
        return op == "anext"
    return isinstance(error, Exception)


def _ordinary(names: List[str], args: List[Any], known: Mapping[str, Type[BaseException]]) -> BaseException:
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


def names_of(error: BaseException) -> List[str]:
    """The names of its classes, the most special first."""
    return [kind.__name__ for kind in type(error).__mro__[:20]]


def plain_arguments(error: BaseException) -> List[Any]:
    """Its arguments where they are plain and small, else its text."""
    try:
        if len(plain.encode(list(error.args))) <= FAILURE_LIMIT:
            return list(error.args)
    except (TypeError, ValueError, RecursionError):
        pass
    return [describe(error)]


def plain_attributes(error: BaseException) -> bytes:
    """What the class of an exception has stored in it, as far as it is public, plain and small."""
    found = {}
    for name, value in list(getattr(error, "__dict__", {}).items()):
        try:
            if type(name) is str and not name.startswith("_") and len(plain.encode(value)) <= FAILURE_LIMIT:
                found[name] = value
        except (TypeError, ValueError, RecursionError):
            pass
    text = plain.encode(found) if found else b""
    return text if len(text) <= FAILURE_LIMIT else b""


def describe(error: BaseException) -> str:
    """An exception's text, whatever its own `__str__` does."""
    try:
        return str(error)[:2000]
    except Exception:  # noqa: BLE001  whoever wrote the class may raise anything
        return "(no text)"
