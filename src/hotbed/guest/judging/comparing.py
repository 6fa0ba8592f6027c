"""Whether an answer is the expected one: plain data against plain data, in the judge.

    default    Python's ==, without letting text equal anything but text. A tuple is not a list, True is 1.
    exact      the same types all the way down as well: 1 is neither 1.0 nor True.
    json       as JSON would say it: a tuple is a list, the keys of a dict are text.
    float      numbers within max(abs, rel * |expected|) where the expected one is a float; ints stay exact.
    unordered  the elements of the outermost list, tuple or set in any order, each as often as expected.

NaN equals nothing, unless `nan_equal`. Numpy arrays are compared as nested lists. A live object of the candidate equals
no plain data (its stand-in sees to that). `checker` is not a comparison: the spec's own function decides.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Callable, Dict

from .records import Record

_NUMBERS = (int, float, complex)


def same(out: Any, expected: Any, mode: str = "default", options: Dict[str, Any] = {}) -> bool:  # noqa: B006  never changed
    """Whether `out` is the expected value, by the rules of `mode`."""
    try:
        return _MODES[mode](_listed(out), _listed(expected), options)
    except RecursionError:
        return False


def _listed(value: Any) -> Any:
    """Numpy arrays as nested lists, and named tuples as tuples, wherever they are in lists, tuples and dicts."""
    kind = type(value)
    if kind.__name__ == "ndarray" and hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Record):
        kind, value = tuple, tuple(value)
    if kind is list or kind is tuple:
        return kind(map(_listed, value)) if any(map(_may_hold_arrays, value)) else value
    if kind is dict:
        return {key: _listed(item) for key, item in value.items()}
    return value


def _may_hold_arrays(value: Any) -> bool:
    return isinstance(value, (list, tuple, dict)) or type(value).__name__ == "ndarray"


def _default(out: Any, expected: Any, options: Dict[str, Any]) -> bool:
    if not options.get("nan_equal"):
        return bool(out == expected)
    return _walk(out, expected, lambda a, b: bool(a == b) or _both_nan(a, b))


def _exact(out: Any, expected: Any, options: Dict[str, Any]) -> bool:
    nan_equal = bool(options.get("nan_equal"))

    def leaf(a: Any, b: Any) -> bool:
        return type(a) is type(b) and (bool(a == b) or (nan_equal and _both_nan(a, b)))

    return _walk(out, expected, leaf, exact=True)


def _float(out: Any, expected: Any, options: Dict[str, Any]) -> bool:
    absolute, relative = options.get("abs", 0.0), options.get("rel", 0.0)
    nan_equal = bool(options.get("nan_equal"))

    def leaf(a: Any, b: Any) -> bool:
        if type(a) is bool or type(b) is bool or not isinstance(a, _NUMBERS) or not isinstance(b, _NUMBERS):
            return type(a) is type(b) and bool(a == b)
        if a == b or (nan_equal and _both_nan(a, b)):
            return True
        return type(b) is not int and _near(a, b, absolute, relative)

    return _walk(out, expected, leaf)


def _near(out: Any, expected: Any, absolute: float, relative: float) -> bool:
    try:
        size, distance = abs(expected), abs(out - expected)
    except OverflowError:  # an int beyond every float
        return False
    return math.isfinite(size) and distance <= max(absolute, relative * size)


def _both_nan(a: Any, b: Any) -> bool:
    return type(a) is float and type(b) is float and a != a and b != b


def _walk(out: Any, expected: Any, leaf: Callable[[Any, Any], bool], exact: bool = False) -> bool:
    """Compare containers element by element, of the same type each, and everything else by `leaf`."""
    kind = type(expected)
    if kind in (list, tuple):
        return (
            type(out) is kind and len(out) == len(expected) and all(_walk(*p, leaf, exact) for p in zip(out, expected))
        )
    if kind is dict:
        return type(out) is dict and _walk_dict(out, expected, leaf, exact)
    if kind in (set, frozenset):
        if exact:
            return type(out) is kind and out == expected and _kinds(out) == _kinds(expected)
        return isinstance(out, (set, frozenset)) and bool(out == expected)
    return leaf(out, expected)


def _walk_dict(out: Dict[Any, Any], expected: Dict[Any, Any], leaf: Callable[[Any, Any], bool], exact: bool) -> bool:
    if len(out) != len(expected) or any(key not in out for key in expected):
        return False
    if exact and _kinds(out) != _kinds(expected):
        return False
    return all(_walk(out[key], item, leaf, exact) for key, item in expected.items())


def _kinds(keys: Any) -> Any:
    """How often each key occurs with its type, down to the elements of tuples."""
    return Counter(map(_typed, keys))


def _typed(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple, tuple(map(_typed, key))
    if type(key) is frozenset:
        return frozenset, frozenset(map(_typed, key))
    return type(key), key


def _json(out: Any, expected: Any, options: Dict[str, Any]) -> bool:
    return _default(_as_json(out), _as_json(expected), options)


def _as_json(value: Any) -> Any:
    if type(value) in (list, tuple):
        return [_as_json(item) for item in value]
    if type(value) is not dict:
        return value
    found = {_key_text(key): _as_json(item) for key, item in value.items()}
    return found if len(found) == len(value) else value  # two keys of one text: JSON cannot say this


def _key_text(key: Any) -> Any:
    if key is True or key is False or key is None:
        return {True: "true", False: "false", None: "null"}[key]
    return repr(key) if type(key) in (int, float) else key


def _unordered(out: Any, expected: Any, options: Dict[str, Any]) -> bool:
    groups = (list, tuple, set, frozenset)
    if type(out) not in groups or type(expected) not in groups or len(out) != len(expected):
        return _default(out, expected, options)
    nan = "NaN" if options.get("nan_equal") else None
    left = Counter(_hashable(item, nan) for item in expected)
    for item in out:  # looked up among what was expected, never collected: these may have been made to collide
        key = _hashable(item, nan)
        if left[key] <= 0:
            return False
        left[key] -= 1
    return True


def _hashable(value: Any, nan: Any) -> Any:
    """A key that equals another exactly where the values are equal."""
    kind = type(value)
    if kind is float and value != value:
        return ("NaN",) if nan else object()
    if kind in (list, tuple):
        return kind.__name__, tuple(_hashable(item, nan) for item in value)
    if kind is dict:
        return "dict", frozenset((key, _hashable(item, nan)) for key, item in value.items())
    if kind is set:
        return frozenset(value)
    if kind is bytearray:
        return bytes(value)
    return value


_MODES: Dict[str, Callable[[Any, Any, Dict[str, Any]], bool]] = {
    "default": _default,
    "exact": _exact,
    "json": _json,
    "float": _float,
    "unordered": _unordered,
}
