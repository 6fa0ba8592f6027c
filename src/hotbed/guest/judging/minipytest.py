"""The part of pytest that test functions use, for judges that have no pytest: a module to be imported as `pytest`.

fixture (function values and generators, requesting each other), parametrize, skip, skipif, xfail, raises, approx, fail,
skip(), param, importorskip, and the fixtures `tmp_path` and `request.param`. Anything else is an AttributeError that
names it, which makes the spec invalid: better than a test that means something else here.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import re
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

MARKS = "_hotbed_marks"
FIXTURE = "_hotbed_fixture"


class Skipped(Exception):
    """A test asked to be skipped."""


class Failed(AssertionError):
    """A test failed by its own word."""


def skip(reason: str = "", **_: Any) -> None:
    """Skip the running test. It does not pass."""
    raise Skipped(reason)


def fail(reason: str = "", pytrace: bool = True) -> None:
    """Fail the running test."""
    raise Failed(reason)


def importorskip(name: str, **_: Any) -> Any:
    """Import a module, or skip."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Skipped("no module " + name) from None


class _Raises:
    """`with pytest.raises(Error, match=...) as info`."""

    def __init__(self, expected: Any, match: Optional[str]) -> None:
        self._expected = expected
        self._match = match
        self.value: Any = None
        self.type: Any = None

    def __enter__(self) -> _Raises:
        return self

    def match(self, pattern: str) -> bool:
        """Whether the text of what was raised matches; fails if not."""
        if not re.search(pattern, str(self.value)):
            raise Failed(f"{str(self.value)!r} does not match {pattern!r}")
        return True

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if error is None:
            raise Failed(f"did not raise {self._expected!r}")
        if not issubclass(kind, self._expected):
            return False
        self.value, self.type = error, kind
        if self._match is not None:
            self.match(self._match)
        return True


def raises(expected: Any, *args: Any, match: Optional[str] = None, **kwargs: Any) -> Any:
    """Expect an exception, as a context manager or by calling a function."""
    checker = _Raises(expected, match)
    if not args:
        return checker
    with checker:
        args[0](*args[1:], **kwargs)
    return checker


class approx:
    """Numbers, or sequences and dicts of numbers, within a tolerance."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # equality with a tolerance has no hash

    def __init__(self, expected: Any, rel: Optional[float] = None, abs: Optional[float] = None, nan_ok: bool = False):
        self.expected = expected
        self._rel, self._abs, self._nan_ok = rel, abs, nan_ok

    def __eq__(self, other: object) -> bool:
        return self._same(other, self.expected)

    def _same(self, out: Any, expected: Any) -> bool:
        if hasattr(expected, "tolist"):
            expected = expected.tolist()
        if isinstance(expected, dict):
            return isinstance(out, dict) and out.keys() == expected.keys() and self._all(out, expected, expected)
        if isinstance(expected, (list, tuple)):
            out = out.tolist() if hasattr(out, "tolist") else out
            both = isinstance(out, (list, tuple)) and len(out) == len(expected)
            return both and self._all(out, expected, range(len(expected)))
        if not isinstance(out, (int, float, complex)) or not isinstance(expected, (int, float, complex)):
            return bool(out == expected)
        return self._near(out, expected)

    def _all(self, out: Any, expected: Any, keys: Any) -> bool:
        return all(self._same(out[key], expected[key]) for key in keys)

    def _near(self, out: Any, expected: Any) -> bool:
        if out == expected:
            return True
        if out != out or expected != expected:
            return self._nan_ok and out != out and expected != expected
        size = abs(expected)
        if math.isinf(size):
            return False
        absolute = 1e-12 if self._abs is None else self._abs
        relative = self._rel if self._rel is not None else (1e-6 if self._abs is None else 0.0)
        return bool(abs(out - expected) <= max(absolute, relative * size))

    def __repr__(self) -> str:
        return f"approx({self.expected!r})"


class param:
    """One set of arguments with an id or marks."""

    def __init__(self, *values: Any, id: Optional[str] = None, marks: Any = ()) -> None:
        self.values = values
        self.id = id
        self.marks = list(marks) if isinstance(marks, (list, tuple)) else [marks]


class Mark:
    """A decorator that adds itself to what it decorates."""

    def __init__(self, name: str, args: Tuple[Any, ...] = (), kwargs: Optional[Dict[str, Any]] = None) -> None:
        self.name, self.args, self.kwargs = name, args, kwargs or {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and (inspect.isfunction(args[0]) or inspect.isclass(args[0])):
            setattr(args[0], MARKS, [*vars(args[0]).get(MARKS, []), self])
            return args[0]
        return Mark(self.name, args, kwargs)


class _Marks:
    def __getattr__(self, name: str) -> Mark:
        return Mark(name)


def fixture(function: Any = None, **options: Any) -> Any:
    """Mark a function as a fixture."""
    if function is None:
        return lambda inner: fixture(inner, **options)
    setattr(function, FIXTURE, options)
    return function


def marks_of(*holders: Any) -> List[Mark]:
    """The marks of a test, outermost first."""
    return [mark for holder in holders for mark in getattr(holder, MARKS, [])]


def parameter_sets(marks: Sequence[Mark]) -> Iterator[Tuple[str, Dict[str, Any], List[Mark]]]:
    """(id, arguments, further marks) of each run that the parametrize marks ask for."""
    axes = [list(_axis(mark)) for mark in marks if mark.name == "parametrize"]
    for chosen in itertools.product(*reversed(axes)):
        values: Dict[str, Any] = {}
        for _, part, _ in chosen:
            values.update(part)
        yield "-".join(each for each, _, _ in chosen), values, [mark for _, _, more in chosen for mark in more]


def _axis(mark: Mark) -> Iterator[Tuple[str, Dict[str, Any], List[Mark]]]:
    names, sets = mark.args[0], mark.kwargs.get("argvalues", mark.args[1] if len(mark.args) > 1 else ())
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    ids = mark.kwargs.get("ids") or []
    for index, values in enumerate(sets):
        one = values if isinstance(values, param) else param(*(values if len(names) > 1 else (values,)))
        label = one.id or (str(ids[index]) if not callable(ids) and index < len(ids) else _label(one.values, index))
        yield label, dict(zip(names, one.values)), one.marks


def _label(values: Sequence[Any], index: int) -> str:
    simple = all(type(value) in (int, float, str, bool, type(None)) for value in values)
    text = "-".join(str(value) for value in values)
    return text if simple and len(text) < 60 else str(index)


def module() -> types.ModuleType:
    """The module to be imported as `pytest`."""
    made = types.ModuleType("pytest")
    public: Dict[str, Callable[..., Any]] = {
        "skip": skip,
        "fail": fail,
        "raises": raises,
        "approx": approx,
        "param": param,
        "fixture": fixture,
    }
    made.__dict__.update(public, importorskip=importorskip, mark=_Marks(), __version__="0")
    return made
