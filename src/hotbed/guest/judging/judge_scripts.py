"""Assert scripts and HumanEval's `check(candidate)`: every assert statement is an official check."""

from __future__ import annotations

import sys
from typing import Any, Collection, Dict, List

from . import judge_names, sealing
from .judge_candidate import Candidate, Missing, StubModule, stub
from .judge_checks import Checks, SpecError, Verdict, explain

COMPLETED = "the script ran to its end"


class Hook:
    """What an instrumented script reports to. `Failure` is what a direct assert statement may go on after."""

    Failure = Exception

    def __init__(self, names: List[str], keep_going: bool) -> None:
        self._begun = [0] * len(names)
        self._ended = [0] * len(names)
        self._messages = [""] * len(names)
        self._keep_going = keep_going

    def begin(self, index: int) -> None:
        """An assert statement starts."""
        self._begun[index] += 1

    def end(self, index: int) -> None:
        """It held."""
        self._ended[index] += 1

    def failed(self, index: int) -> bool:
        """A direct one did not; whether to raise."""
        self._messages[index] = explain(sys.exc_info()[1] or AssertionError())
        return not self._keep_going

    def count(self, names: List[str], checks: Checks, barriers: Collection[int]) -> None:
        """Turn the counts into outcomes. `barriers` hold if nobody came to them: for a script that ran to its end."""
        for index, name in enumerate(names):
            begun = self._begun[index]
            if begun or index in barriers:
                checks.record(name, "passed" if begun == self._ended[index] else "failed", self._messages[index])

    def ran(self) -> int:
        """How many statements were reached."""
        return sum(self._begun)


class ScriptStyle:
    """Compiled once; run for one candidate after another, each in a namespace of its own."""

    def __init__(self, spec: Dict[str, Any]) -> None:
        self._spec = spec
        self._check = spec["style"] == "check"
        try:
            tree, self._names, self._barriers = judge_names.instrument(spec["tests"], "check" if self._check else "")
            self._code = compile(tree, "tests.py", "exec", dont_inherit=True)
            self._support = compile(spec["support"], "support.py", "exec", dont_inherit=True)
            self._free = judge_names.free_names(spec["tests"])
        except (SyntaxError, ValueError, RecursionError) as error:
            raise SpecError(f"tests: {explain(error)}") from None

    def run(self, candidate: Candidate) -> Verdict:
        """The verdict of one candidate."""
        checks = Checks(self._names or [COMPLETED])
        verdict = Verdict(checks)
        hook = Hook(self._names, self._spec["partial"])
        namespace = self._namespace(hook)
        wanted = [name for name in [*self._free, self._entry()] if name and name not in namespace]
        names = (
            ["*"] if self._imports() else list(dict.fromkeys([*wanted, *([self._entry()] if self._entry() else [])]))
        )
        try:
            peer, found = candidate.load(names)
        except Exception as error:  # noqa: BLE001  the candidate's code may raise anything while it loads
            verdict.say("candidate_error", "the code does not load: " + explain(error))
            return verdict
        missing = self._provide(namespace, peer, found, wanted)
        self._execute(verdict, namespace, hook, candidate, missing)
        return verdict

    def _entry(self) -> str:
        return str(self._spec["entry"] or "").split(".")[0]

    def _imports(self) -> bool:
        return self._spec["module"] in self._spec["tests"]

    def _namespace(self, hook: Hook) -> Dict[str, Any]:
        namespace: Dict[str, Any] = {"__name__": "__main__", "__file__": "tests.py", judge_names.HOOK: hook}
        try:
            exec(self._support, namespace)
        except Exception as error:
            raise SpecError(f"support: {explain(error)}") from error
        return namespace

    def _provide(
        self, namespace: Dict[str, Any], peer: sealing.JudgePeer, found: Dict[str, Any], wanted: List[str]
    ) -> List[str]:
        """Put the stubs in place; the names that the candidate lacks."""
        sys.modules[self._spec["module"]] = StubModule(self._spec["module"], peer, found, wanted)
        missing = []
        entry = self._entry()
        for name in dict.fromkeys([*wanted, *([entry] if entry else [])]):
            try:
                namespace[name] = stub(peer, found, name)
            except KeyError:
                namespace.pop(name, None)
                missing.append(name)
        return missing

    def _execute(
        self, verdict: Verdict, namespace: Dict[str, Any], hook: Hook, candidate: Candidate, missing: List[str]
    ) -> None:
        error = self._error_of(namespace)
        error = candidate.over() or error  # also where the tests caught that
        hook.count(self._names, verdict.checks, self._barriers if error is None else ())
        if error is None:
            if hook.ran() == 0 and candidate.calls() == 0 and not missing:
                raise SpecError("the tests ran to their end and checked nothing")
            if not self._names and not missing:
                verdict.checks.record(COMPLETED, "passed" if candidate.calls() else "failed")
            return
        if isinstance(error, sealing.Over):
            verdict.say(error.status, error.reason)
        elif isinstance(error, Missing) or getattr(error, "name", None) == self._spec["module"]:
            verdict.say("candidate_error", explain(error))
        elif missing and isinstance(error, NameError):
            verdict.say("candidate_error", "the code defines no {}".format(", ".join(missing)))
        elif candidate.calls() == 0 and not missing:
            raise SpecError(f"the tests fail before they ask the candidate anything: {explain(error)}")
        else:
            verdict.say("failed", verdict.checks.first_message() or explain(error))

    def _error_of(self, namespace: Dict[str, Any]) -> Any:
        """Run the script; what it raised, if anything."""
        try:
            exec(self._code, namespace)
            if self._check:
                self._call_check(namespace)
        except (Exception, SystemExit, sealing.Over) as error:  # noqa: BLE001  tests fail by raising, whatever they raise
            return None if type(error) is SystemExit and not error.code else error  # their own way to end
        return None

    def _call_check(self, namespace: Dict[str, Any]) -> None:
        check = namespace.get("check")
        if not callable(check):
            raise SpecError("the tests define no check(candidate)")
        entry = self._spec["entry"]
        if entry.split(".")[0] not in namespace:
            raise NameError(entry)
        candidate = namespace[entry.split(".")[0]]
        for part in entry.split(".")[1:]:
            candidate = getattr(candidate() if isinstance(candidate, type) else candidate, part)
        check(candidate)
