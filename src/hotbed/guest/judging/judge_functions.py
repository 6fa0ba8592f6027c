"""Running test functions the way pytest does: parametrized, with fixtures, alone or in `Test*` classes."""

from __future__ import annotations

import asyncio
import functools
import inspect
import types
import unittest
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

from . import minifixtures, minipytest
from .judge_checks import SpecError, explain

Run = Callable[[], Tuple[str, str]]


def collect(module: types.ModuleType, prefix: str) -> Iterator[Tuple[str, Run]]:
    """(name, run) of each test function of a module, in order. A run gives an outcome and a message."""
    for name in ("setup_module", "teardown_module"):
        if hasattr(module, name):
            raise SpecError(f"{name} is not supported by this judge: a fixture does the same")
    fixtures = {name: value for name, value in vars(module).items() if hasattr(value, minipytest.FIXTURE)}
    for name, value in list(vars(module).items()):
        if name.startswith("test") and inspect.isfunction(value):
            yield from _expand(prefix + name, value, minipytest.marks_of(value), fixtures, _itself(value, module))
        elif _is_test_class(name, value):
            yield from _methods(prefix + name, value, fixtures)


def _is_test_class(name: str, value: Any) -> bool:
    return name.startswith("Test") and inspect.isclass(value) and not issubclass(value, unittest.TestCase)


Bind = Callable[[], Tuple[Any, Callable[[], Any]]]  # a function that is set up, and what is to be done after it


def _itself(function: Any, module: types.ModuleType) -> Bind:
    """A function of a module, set up as pytest would."""

    def bind() -> Tuple[Any, Callable[[], Any]]:
        _call_if_there(module, "setup_function", function)
        return function, lambda: _call_if_there(module, "teardown_function", function)

    return bind


def _call_if_there(owner: Any, name: str, given: Any = None) -> None:
    method = getattr(owner, name, None)
    if method is not None:
        method(*[given] * len(inspect.signature(method).parameters))


def _methods(prefix: str, owner: Any, fixtures: Dict[str, Any]) -> Iterator[Tuple[str, Run]]:
    members = [(name, value) for name, value in inspect.getmembers(owner, inspect.isfunction)]
    own = {name: value for name, value in members if hasattr(value, minipytest.FIXTURE)}
    for name, value in sorted(members, key=lambda item: item[1].__code__.co_firstlineno):
        if name.startswith("test"):
            marks = minipytest.marks_of(owner, value)
            yield from _expand(prefix + "::" + name, value, marks, {**fixtures, **own}, _binder(owner, name))
    for name, value in vars(owner).items():
        if _is_test_class(name, value):
            yield from _methods(prefix + "::" + name, value, {**fixtures, **own})


def _binder(owner: Any, name: str) -> Bind:
    """A fresh instance per run, set up as pytest would."""

    def bind() -> Tuple[Any, Callable[[], Any]]:
        instance = owner()
        for setup in ("setup_class", "setup_method"):
            _call_if_there(instance, setup)

        def after() -> None:
            for teardown in ("teardown_method", "teardown_class"):
                _call_if_there(instance, teardown)

        return getattr(instance, name), after

    return bind


def _expand(
    name: str, function: Any, marks: List[Any], fixtures: Dict[str, Any], bind: Bind
) -> Iterator[Tuple[str, Run]]:
    _check_marks(marks, fixtures)
    for label, values, more in minipytest.parameter_sets(marks):
        for variant, fixed in _fixture_variants(function, values, fixtures):
            labels = "-".join(part for part in (label, variant) if part)
            test = _Test(bind, [*marks, *more], fixtures, values, fixed)
            yield (name + "[" + labels + "]" if labels else name), test.run


def _check_marks(marks: List[Any], fixtures: Dict[str, Any]) -> None:
    for mark in marks:
        for name in mark.args if mark.name == "usefixtures" else ():
            if name not in fixtures and name not in _BUILTIN:
                raise SpecError(f"fixture {name!r} is not supported by this judge")
        if mark.name == "parametrize" and mark.kwargs.get("indirect"):
            raise SpecError("parametrize(indirect=...) is not supported by this judge")


def _fixture_variants(
    function: Any, values: Dict[str, Any], fixtures: Dict[str, Any]
) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """The runs that fixtures with `params` ask for; one parametrized fixture at most."""
    wanted = _closure(function, values, fixtures)
    withparams = [name for name in wanted if getattr(fixtures[name], minipytest.FIXTURE).get("params")]
    if len(withparams) > 1:
        raise SpecError("two parametrized fixtures in one test are not supported")
    if not withparams:
        yield "", {}
        return
    for index, value in enumerate(getattr(fixtures[withparams[0]], minipytest.FIXTURE)["params"]):
        yield minipytest._label([value], index), {withparams[0]: value}


def _closure(function: Any, values: Dict[str, Any], fixtures: Dict[str, Any]) -> List[str]:
    found: Set[str] = set()
    waiting = [name for name in _parameters(function) if name not in values]
    while waiting:
        name = waiting.pop()
        if name in fixtures and name not in found:
            found.add(name)
            waiting += _parameters(fixtures[name])
        elif name not in fixtures and name not in _BUILTIN:
            raise SpecError(f"fixture {name!r} is not supported by this judge")
    return sorted(found)


def _parameters(function: Any) -> List[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


_BUILTIN = ("request", *minifixtures.MAKE)


class _Test:
    """One run of one test function."""

    def __init__(
        self,
        bind: Bind,
        marks: List[Any],
        fixtures: Dict[str, Any],
        values: Dict[str, Any],
        fixed: Dict[str, Any],
    ) -> None:
        self._bind, self._marks, self._fixtures = bind, marks, fixtures
        self._values, self._fixed = values, fixed
        self._made: Dict[str, Any] = {}
        self._open: List[Any] = []
        self._instance: Any = None

    def run(self) -> Tuple[str, str]:
        """The outcome. Skips and expected failures are no passes."""
        for mark in self._marks:
            if mark.name == "skip" or (mark.name == "skipif" and mark.args and mark.args[0]):
                return "skipped", str(mark.kwargs.get("reason", ""))
            if mark.name == "xfail":
                return "skipped", "expected to fail"
        try:
            self._call()
        except minipytest.Skipped as error:
            return "skipped", str(error)
        except Exception as error:  # noqa: BLE001  tests fail by raising, whatever they raise
            return "failed", explain(error)
        return "passed", ""

    def _call(self) -> None:
        try:
            function, after = self._bind()
            self._open.append(after)
            self._instance = getattr(function, "__self__", None)
            for name, each in self._fixtures.items():
                if getattr(each, minipytest.FIXTURE).get("autouse"):
                    self._fixture(name)
            for name in (each for mark in self._marks if mark.name == "usefixtures" for each in mark.args):
                self._fixture(name)
            made = function(**{name: self._argument(name) for name in _parameters(function)})
            if inspect.iscoroutine(made):
                asyncio.run(made)
            elif inspect.isgenerator(made):
                raise TypeError("a test that yields has run nothing")
        finally:
            for close in reversed(self._open):
                close()

    def _argument(self, name: str) -> Any:
        return self._values[name] if name in self._values else self._fixture(name)

    def _fixture(self, name: str) -> Any:
        if name not in self._made and name not in self._fixtures and name in minifixtures.MAKE:
            made = self._made[name] = minifixtures.MAKE[name]()
            self._open += [made.close] if hasattr(made, "close") else []
        if name not in self._made:
            function = self._fixtures[name]
            wanted = [each for each in _parameters(function) if each != "request"]
            arguments = {each: self._argument(each) for each in wanted}
            if "self" in inspect.signature(function).parameters:
                arguments["self"] = self._instance
            if "request" in _parameters(function):
                arguments["request"] = types.SimpleNamespace(param=self._fixed.get(name))
            made = function(**arguments)
            if inspect.isgenerator(made):
                self._open.append(functools.partial(next, made, None))
                made = next(made)
            self._made[name] = made
        return self._made[name]
