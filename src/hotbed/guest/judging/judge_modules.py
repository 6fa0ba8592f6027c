"""unittest and pytest sources: the official test files run here and import a stub of the candidate's module.

The official checks are collected first, with stubs that can be named but not used, so that no candidate has a say in
their number. Where a file uses the candidate while it is imported, they are collected from the live import instead.
"""

from __future__ import annotations

import os
import sys
import types
import unittest
from typing import Any, Dict, Iterator, List, Optional, Tuple

from . import judge_functions, judge_names, loading, minipytest, proxies, sealing
from .judge_candidate import Candidate, StubModule, stub
from .judge_checks import Checks, SpecError, Verdict, explain


class _Inert:
    """A name of the candidate that nobody may use yet."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise _UsedEarly("the candidate is used while the tests are imported")

    __getitem__ = __iter__ = __len__ = __bool__ = __add__ = __mro_entries__ = __call__


class _UsedEarly(Exception):
    """The tests ask the candidate while they are collected."""


class _InertModule(types.ModuleType):
    __all__: List[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Inert()


class ModuleStyle:
    """Test files, run for one candidate after another, each time imported anew."""

    def __init__(self, spec: Dict[str, Any]) -> None:
        self._spec = spec
        self._functions = spec["style"] == "pytest"
        files = spec["files"] or {"test_tests.py": spec["tests"]}
        self._sources = {name: text for name, text in sorted(files.items()) if _is_test_file(name)}
        if not self._sources:
            raise SpecError("no test files: their names start with test_ or end with _test.py")
        loading.write_files(tuple((name, text) for name, text in files.items() if name not in self._sources))
        try:
            self._codes = [
                (name, compile(text, name, "exec", dont_inherit=True)) for name, text in self._sources.items()
            ]
            self._free = sorted({name for text in self._sources.values() for name in judge_names.free_names(text)})
        except (SyntaxError, ValueError, RecursionError) as error:
            raise SpecError(f"tests: {explain(error)}") from None
        self._kept = set(sys.modules)
        self._provide_pytest()
        self._official = self._collect_inert()

    def _provide_pytest(self) -> None:
        """A judge runs its own small pytest: no plugins, no configuration, no files that could steer it."""
        if self._functions:
            sys.modules["pytest"] = minipytest.module()
            self._kept.add("pytest")

    def _collect_inert(self) -> Optional[List[str]]:
        sys.modules[self._spec["module"]] = _InertModule(self._spec["module"])
        try:
            modules = self._import({name: _Inert() for name in self._free})
            names = [name for name, _ in self._tests(modules)]
        except _UsedEarly:
            return None
        except SpecError:
            raise
        except Exception as error:  # noqa: BLE001  the spec's code may raise anything
            raise SpecError(f"the tests cannot be imported: {explain(error)}") from None
        if not names:
            raise SpecError("the tests define no test")
        return names

    def _import(self, stubs: Dict[str, Any]) -> List[types.ModuleType]:
        found = []
        for name, code in self._codes:
            module = types.ModuleType(name[:-3].replace("/", "."))
            module.__dict__.update(stubs, __file__=os.path.abspath(name))
            sys.modules[module.__name__] = module
            exec(code, module.__dict__)
            found.append(module)
        return found

    def _tests(self, modules: List[types.ModuleType]) -> Iterator[Tuple[str, Any]]:
        """(name, run or None) of each test; unittest's own run as suites, one a module."""
        for module in modules:
            prefix = module.__name__ + "::" if len(modules) > 1 else ""
            for case in _cases(module):
                yield prefix + _name(case), None
            if self._functions:
                yield from judge_functions.collect(module, prefix)

    def run(self, candidate: Candidate) -> Verdict:
        """The verdict of one candidate."""
        verdict = Verdict(Checks(self._official or []))
        try:
            peer, found = candidate.load(["*"])
        except Exception as error:  # noqa: BLE001  the candidate's code may raise anything while it loads
            verdict.say("candidate_error", "the code does not load: " + explain(error))
            return verdict
        sys.modules[self._spec["module"]] = StubModule(self._spec["module"], peer, found, self._free)
        stubs = {name: stub(peer, found, name) for name in self._free if found.get(name)}
        try:
            modules = self._import(stubs)
            tests = list(self._tests(modules))
            if self._official is None:
                verdict.checks = Checks(self._with_written([name for name, _ in tests]))
                verdict.unsealed.append("the tests use the candidate while they are collected")
            self._run_all(modules, tests, verdict)
        except sealing.Over as over:
            verdict.say(over.status, over.reason)
        except Exception as error:  # noqa: BLE001  importing the tests uses the candidate's names
            verdict.say("candidate_error", "the tests cannot use the code: " + explain(error))
        finally:
            self._forget()
        if peer.over is not None:
            verdict.say(peer.over.status if peer.over.status != "exit" else "candidate_error", peer.over.reason)
        return verdict

    def _with_written(self, collected: List[str]) -> List[str]:
        """And the test functions that are in the sources and were not collected: the candidate has replaced them."""
        several = len(self._sources) > 1
        written = [
            (file[:-3].replace("/", ".") + "::" if several else "") + name
            for file, text in self._sources.items()
            for name in judge_names.test_functions(text)
            if self._functions
        ]
        found = {name.partition("[")[0] for name in collected}
        return collected + [name for name in written if name not in found]

    def _run_all(self, modules: List[types.ModuleType], tests: List[Tuple[str, Any]], verdict: Verdict) -> None:
        for module in modules:
            prefix = module.__name__ + "::" if len(modules) > 1 else ""
            result = _Recorder(verdict.checks, prefix)
            unittest.TestSuite(_suites(module)).run(result)
        for name, run in tests:
            if run is not None:
                verdict.checks.record(name, *run())

    def _forget(self) -> None:
        """Modules that the tests brought in: the next candidate's tests import them anew."""
        here = os.getcwd() + os.sep
        for name in set(sys.modules) - self._kept:
            if (getattr(sys.modules[name], "__file__", None) or here).startswith(here):
                del sys.modules[name]


def _is_test_file(name: str) -> bool:
    base = os.path.basename(name)
    return base.endswith(".py") and (base.startswith("test") or base.endswith("_test.py"))


def _suites(module: types.ModuleType) -> List[Any]:
    loader = unittest.TestLoader()
    kinds = [
        value for value in vars(module).values() if isinstance(value, type) and issubclass(value, unittest.TestCase)
    ]
    own = [kind for kind in kinds if kind.__module__ == module.__name__]
    return [loader.loadTestsFromTestCase(kind) for kind in own]


def _cases(module: types.ModuleType) -> Iterator[unittest.TestCase]:
    for suite in _suites(module):
        yield from suite


def _name(case: Any) -> str:
    return "{}.{}".format(type(case).__qualname__, getattr(case, "_testMethodName", "?"))


class _Recorder(unittest.TestResult):
    """Success is what unittest says last, and only if nothing else was said."""

    def __init__(self, checks: Checks, prefix: str) -> None:
        super().__init__()
        self._checks = checks
        self._prefix = prefix

    def _note(self, test: Any, outcome: str, message: str = "") -> None:
        self._checks.record(self._prefix + _name(test), outcome, message)

    def addSuccess(self, test: Any) -> None:
        if proxies.live(getattr(test, getattr(test, "_testMethodName", ""), None)) is None:
            self._note(test, "passed")
        else:
            self._note(test, "error", "the candidate has put something in place of the test")

    def addFailure(self, test: Any, err: Any) -> None:
        self._note(test, "failed", explain(err[1]))

    def addError(self, test: Any, err: Any) -> None:
        self._note(test, "error", explain(err[1]))

    def addSkip(self, test: Any, reason: str) -> None:
        self._note(test, "skipped", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self._note(test, "skipped", "expected to fail")

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._note(test, "skipped", "expected to fail")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._note(test, "failed", explain(err[1]))
