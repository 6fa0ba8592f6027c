"""Which of the tests' objects a candidate may use, and how much of each.

What it asks of them happens in the judge, whose files, memory and modules hold the expected values. So only objects
are offered that lead nowhere: those of the tests' own classes, and of a list of classes of the library. Of the others

- a path can be read and written below the place that the tests handed over, and nowhere else;
- an open file can be read, written and moved in;
- a database connection takes statements;
- a mock takes calls, and plain values for what it stands for. How it answers and what it remembers is the tests'.

Whatever else the tests hand over has an error that says so.
"""

from __future__ import annotations

import builtins
import functools
import io
import operator
import os
import pathlib
import sys
import types
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Set

from . import callbacks, proxies

_CLOSED = (
    types.ModuleType,
    types.FrameType,
    types.CodeType,
    types.TracebackType,
    types.CoroutineType,
    types.GeneratorType,
    types.AsyncGeneratorType,
    types.FunctionType,
)
# Modules of the library of whose classes no instance reaches a file, a process, a module or an event loop.
_HARMLESS = frozenset(
    "builtins abc _abc collections collections.abc _collections _collections_abc array datetime _datetime decimal"
    " _decimal _pydecimal fractions numbers enum dataclasses typing itertools functools _functools operator _operator"
    " random _random re _sre queue _queue threading _thread contextlib uuid ipaddress heapq bisect weakref _weakref"
    " contextvars _contextvars statistics asyncio.queues asyncio.locks asyncio.mixins time".split()
)
_HARMLESS_CLASSES = frozenset(
    (
        ("types", "SimpleNamespace"),
        ("argparse", "Namespace"),
        ("_io", "StringIO"),
        ("_io", "_TextIOBase"),
        ("_io", "_IOBase"),
        ("_io", "BytesIO"),
        ("_io", "_BufferedIOBase"),
        ("numpy", "ufunc"),
    )
)
# And of whose functions no call does, whatever it is given.
_HARMLESS_CALLS = _HARMLESS | frozenset(
    "math json json.decoder json.encoder textwrap string copy bisect _bisect heapq _heapq unicodedata html base64"
    " binascii zlib struct _struct urllib.parse difflib calendar secrets hashlib _hashlib posixpath colorsys keyword"
    " numpy".split()
)
_OURS = (__name__, callbacks.__name__)  # whose functions stand in for what they look after
_NOT_OF_NUMPY = frozenset(
    "load save savez savez_compressed savetxt loadtxt genfromtxt fromfile fromregex memmap open_memmap".split()
)
_FILE = frozenset(
    "read read1 readline readlines readinto write writelines close closed seek tell flush truncate name mode encoding"
    " readable writable seekable isatty newlines".split()
)
_DATABASE = frozenset(
    "execute executemany executescript commit rollback close cursor fetchone fetchmany fetchall description rowcount"
    " lastrowid total_changes in_transaction row_factory arraysize keys".split()
)
_LOGGER = frozenset(
    "debug info warning warn error exception critical log isEnabledFor setLevel getEffectiveLevel name level".split()
)
_PURE_PATH = frozenset(
    "name stem suffix suffixes parent parents parts anchor drive root joinpath with_name with_stem with_suffix"
    " relative_to is_relative_to as_posix match is_absolute".split()
)
_PATH = frozenset(
    "read_text read_bytes write_text write_bytes exists is_file is_dir is_symlink mkdir rmdir unlink touch stat"
    " open".split()
)
_LISTING = frozenset(("iterdir", "glob", "rglob"))
# Functions that lead from any object to every other, whoever hands them over.
_LEADING = tuple(
    vars(builtins)[name]
    for name in "eval exec compile open __import__ getattr setattr delattr globals locals vars dir breakpoint".split()
) + (str.format, str.format_map, object.__getattribute__, type.__getattribute__)
_LEADING += (operator.attrgetter, operator.methodcaller)
_CALLED = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


class Offered:
    """What one candidate is offered. It knows the places that the tests have handed over."""

    def __init__(self) -> None:
        self._home = os.path.realpath(os.getcwd())  # of the judge, whatever a test changes to
        self._places: List[str] = []
        self._checked: Set[int] = set()  # by id: whoever lends a value keeps it

    def use(self, value: Any, op: str, args: List[Any], kwargs: Dict[str, Any]) -> Any:
        """One operation on something that was lent. Raises what it raises, and `TypeError` where it is not offered."""
        kind = callbacks.kind(value)
        attributes: Dict[str, Callable[..., Any]] = (
            {"getattr": self.get, "setattr": self.set, "delattr": self.delete} if kind in "ok" else {}
        )
        operation = attributes.get(op) or callbacks.ALLOWED[kind].get(op)
        if operation is None:
            raise TypeError(f"the tests' object cannot be asked for {str(op)[:40]}")
        if id(value) not in self._checked:
            self.check(value)
            self._checked.add(id(value))
        for given in (*args, *kwargs.values()):
            if callable(given) and proxies.live(given) is None:  # the tests' own again: it may be called there
                self.check(given)
        return operation(value, *args, **kwargs)

    def lend(self, value: Any) -> None:
        """The tests hand something over themselves: a path is a place from now on, unless the judge's own files are."""
        if isinstance(value, pathlib.Path):
            place = os.path.realpath(str(value))
            if not _below(self._home, place):
                self._places.append(place)

    def check(self, value: Any) -> None:
        """Raise `TypeError` for what no operation of a candidate may touch."""
        if isinstance(value, functools.partial):
            return self.check(value.func)
        if any(value is each for each in _LEADING) or isinstance(value, types.ModuleType):
            raise TypeError(f"the tests' {_name(value)} is not for a candidate to use")
        if isinstance(value, _CALLED):
            return self._check_function(value)
        kind = value if isinstance(value, type) else type(value)
        if not _leads_nowhere(kind, self._home) and not _offered_in_part(value):
            raise TypeError(
                f"the tests handed over a {kind.__module__}.{kind.__qualname__}, which a candidate cannot use"
            )

    def _check_function(self, function: Any) -> None:
        """One of an object is as harmless as that is, another as its module."""
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, types.ModuleType):
            return self.check(owner)
        module = function.__module__ or _name(owner)
        harmless = module in _HARMLESS_CALLS and not (module == "numpy" and _name(function) in _NOT_OF_NUMPY)
        if not harmless and module not in _OURS and not _came_with_tests(module, self._home):
            raise TypeError(f"the tests' {module}.{_name(function)} is not for a candidate to use")

    def get(self, value: Any, name: Any) -> Any:
        """An attribute."""
        name = _public(value, name)
        if isinstance(value, pathlib.PurePath):
            return self._of_path(value, name)
        narrow = _narrow(value)
        if narrow is not None and name not in narrow:
            raise AttributeError(f"{name} of the tests' {type(value).__name__} is not for a candidate to use")
        if _is_mock(value) and _is_the_mocks(name):
            raise AttributeError(f"{name} of a mock is the tests'")
        return getattr(value, name)

    def set(self, value: Any, name: Any, item: Any) -> None:
        """Put something in an attribute; not in place of what the tests' classes do."""
        name = self._changed(value, name)
        if _acts(item) and _is_mock(value):
            raise AttributeError("a mock takes plain values only")
        if _acts(item) and callable(getattr(value, name, None)):
            raise AttributeError(f"{name} is the tests' own")
        setattr(value, name, item)

    def delete(self, value: Any, name: Any) -> None:
        """Remove one."""
        delattr(value, self._changed(value, name))

    def _changed(self, value: Any, name: Any) -> str:
        name = _public(value, name)
        if isinstance(value, pathlib.PurePath) or _narrow(value) is not None:
            raise AttributeError(f"the tests' {type(value).__name__} cannot be changed")
        if _is_mock(value) and _is_the_mocks(name):
            raise AttributeError(f"{name} of a mock is the tests'")
        if callable(getattr(type(value), name, None)):
            raise AttributeError(f"{name} is what the tests' class does")
        return str(name)

    def _of_path(self, path: Any, name: str) -> Any:
        if name in _PURE_PATH:
            return getattr(path, name)
        if name in _PATH:
            return self._inside(path, getattr(path, name))
        if name in _LISTING:
            listed = self._inside(path, getattr(path, name))
            return lambda *given: [found for found in listed(*given) if self._holds(found)]
        raise AttributeError(f"{name} of the tests' paths is not for a candidate to use")

    def _inside(self, path: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        def only_inside(*args: Any, **kwargs: Any) -> Any:
            if not self._holds(path):
                raise PermissionError("a candidate may use the tests' files below what it was given only")
            return function(*args, **kwargs)

        return only_inside

    def _holds(self, path: Any) -> bool:
        real = os.path.realpath(str(path))
        return any(_below(real, place) for place in self._places)


def _acts(value: Any) -> bool:
    """Whether a value is, or holds near its top, what does something of its own: no plain data."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(map(_acts, value))
    if isinstance(value, dict):
        return any(map(_acts, value.values()))
    return proxies.live(value) is not None or callable(value)


def _below(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip("/") + "/")


def _public(value: Any, name: Any) -> str:
    """The name, if it is one that anything may be asked for."""
    if type(name) is not str or name.startswith("_") or isinstance(value, _CLOSED):
        raise AttributeError("the tests' objects offer public attributes only")
    return str(name)


def _narrow(value: Any) -> Optional[FrozenSet[str]]:
    """The attributes of what is offered in part; None of what is offered whole."""
    if isinstance(value, io.IOBase) and not isinstance(value, (io.StringIO, io.BytesIO)):
        return _FILE
    modules = {kind.__module__ for kind in type(value).__mro__}
    return _DATABASE if "sqlite3" in modules else _LOGGER if "logging" in modules else None


def _offered_in_part(value: Any) -> bool:
    """Whether some of it is offered, whatever its class leads to. A class itself would make another."""
    if isinstance(value, type):
        return issubclass(value, pathlib.PurePath)
    return isinstance(value, pathlib.PurePath) or _is_mock(value) or _narrow(value) is not None


def _is_mock(value: Any) -> bool:
    found = sys.modules.get("unittest.mock")
    return found is not None and isinstance(value, found.NonCallableMock)


def _is_the_mocks(name: str) -> bool:
    """Whether a name is what mocks themselves answer to."""
    return hasattr(sys.modules["unittest.mock"].Mock, name)


def _leads_nowhere(kind: type, home: str) -> bool:
    """Whether every class that a class is made of is the tests' own, or a harmless one of the library."""
    return all(
        base.__module__ in _HARMLESS
        or (base.__module__, base.__name__) in _HARMLESS_CLASSES
        or _came_with_tests(base.__module__, home)
        for base in kind.__mro__
    )


def _came_with_tests(name: str, home: str) -> bool:
    """Whether a module is of no file, or of one that lies beside the tests."""
    module = sys.modules.get(name)
    if module is None or name == "__main__":
        return True
    file = getattr(module, "__file__", None)
    if file is None:
        return name not in sys.builtin_module_names and getattr(module, "__spec__", None) is None
    return _below(os.path.realpath(file), home)


def _name(value: Any) -> str:
    return str(getattr(value, "__name__", type(value).__name__))
