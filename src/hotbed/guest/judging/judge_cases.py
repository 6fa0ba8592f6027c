"""Cases: arguments and an expected answer each; by default one fresh process of the candidate for each.

Property grading is cases, too: the judge draws the inputs and asks the reference, once for all siblings.
"""

from __future__ import annotations

import copy
import random
import signal
import textwrap
from typing import Any, Callable, Dict, List, Tuple

from . import comparing, plain, sealing
from .judge_candidate import Candidate
from .judge_checks import Checks, SpecError, Verdict, explain

TIMEOUTS_LIMIT = 3

Case = Tuple[bytes, bytes]  # (arguments and keyword arguments, expected), as text: decoding makes a copy


class CaseStyle:
    """Fixed cases."""

    def __init__(self, spec: Dict[str, Any]) -> None:
        self._spec = spec
        self._compare = spec["compare"]
        self._checker = _checker(self._compare)
        self._cases = self._make_cases()
        if not self._cases:
            raise SpecError("no cases")

    def _make_cases(self) -> List[Case]:
        return [(plain.dumps(case["call"]), plain.dumps(case["expected"])) for case in self._spec["cases"]]

    def run(self, candidate: Candidate) -> Verdict:
        """The verdict of one candidate."""
        names = [f"case {index}" for index in range(len(self._cases))]
        verdict = Verdict(Checks(names))
        timeouts = 0
        peer = None
        for name, case in zip(names, self._cases):
            try:
                if peer is None or self._spec["fresh"]:
                    peer = self._start(candidate)
                self._judge(name, case, peer, verdict)
                continue
            except sealing.Over as over:
                peer, status, reason = None, over.status, over.reason
            except _NotLoaded as error:
                verdict.say("candidate_error", str(error))
                break
            status, timeouts = self._ended(candidate, status, timeouts)
            verdict.checks.record(name, status, reason)
            if status == "timeout":
                verdict.say("timeout", reason)
            if timeouts >= TIMEOUTS_LIMIT or (not self._spec["fresh"] and peer is None):
                break
        self._summarise(verdict)
        return verdict

    def _start(self, candidate: Candidate) -> sealing.JudgePeer:
        entry = self._spec["entry"].split(".")[0]
        try:
            peer, found = candidate.session([entry]) if self._spec["fresh"] else candidate.load([entry])
        except Exception as error:  # noqa: BLE001  the candidate's code may raise anything while it loads
            raise _NotLoaded("the code does not load: " + explain(error)) from None
        if found.get(entry) is None:
            raise _NotLoaded(f"the code defines no {entry}")
        return peer

    def _judge(self, name: str, case: Case, peer: sealing.JudgePeer, verdict: Verdict) -> None:
        """Ask one case and compare. What the candidate raises is its answer, and a wrong one."""
        args, kwargs = plain.decode(case[0])
        try:
            out = peer.question("run", self._spec["entry"], tuple(args), kwargs)
        except Exception as error:  # noqa: BLE001  the candidate's code may raise anything
            verdict.checks.record(name, "error", explain(error))
            return
        target = self._compare.get("target", "")
        if target.startswith("arg"):
            out = args[int(target[3:])]
        expected = plain.decode(case[1])
        if self._checker is None:
            right = comparing.same(out, expected, self._compare["mode"], self._compare)
        else:
            right = self._ask_checker(case, out, expected)
        shown = "" if right else f"got {_shown(out):.150}, expected {_shown(expected):.150}"
        verdict.checks.record(name, "passed" if right else "failed", shown)

    def _ask_checker(self, case: Case, out: Any, expected: Any) -> bool:
        assert self._checker is not None
        args, _ = plain.decode(case[0])
        try:
            return self._checker(args, out, expected) is True
        except Exception:  # noqa: BLE001  a checker meets answers nobody thought of: no proof, no credit
            return False

    def _ended(self, candidate: Candidate, status: str, timeouts: int) -> Tuple[str, int]:
        """What ended a process; after a hang nothing more is tried, after CPU limits a few times."""
        if status == "timeout":
            return status, TIMEOUTS_LIMIT
        if not self._spec["fresh"]:
            return "error", timeouts
        try:
            how = candidate.ended()
        except sealing.Over:
            return "error", TIMEOUTS_LIMIT
        if how.get("signal") in (signal.SIGPROF, signal.SIGXCPU):
            return "timeout", timeouts + 1
        return "error", timeouts

    def _summarise(self, verdict: Verdict) -> None:
        outcomes = verdict.checks.outcomes()
        if "timeout" in outcomes:
            verdict.say("timeout", verdict.checks.first_message())
        elif "error" in outcomes:
            verdict.say("candidate_error", verdict.checks.first_message())


class PropertyStyle(CaseStyle):
    """Cases drawn by a generator and answered by a reference, both the spec's own, both run here."""

    def _make_cases(self) -> List[Case]:
        spec = self._spec
        seed = "{}/{}".format(spec["seed"], "inputs")
        try:
            draw = _generator(spec["generator"], spec["generator_name"], random.Random(seed))
            reference = _reference(spec["reference"], spec["reference_name"], spec["entry"])
            random.seed(seed)
            return [self._draw(draw, reference) for _ in range(spec["k"])]
        except Exception as error:  # noqa: BLE001  the spec's code may raise anything
            raise SpecError(f"reference or generator: {explain(error)}") from None

    def _draw(self, draw: Callable[[], List[Any]], reference: Callable[..., Any]) -> Case:
        args = draw()
        call = plain.encode([args, {}])
        given = copy.deepcopy(args)
        expected = reference(*given)
        target = self._compare.get("target", "")
        return call, plain.encode(given[int(target[3:])] if target.startswith("arg") else expected)


class _NotLoaded(Exception):
    """The candidate's code does not give the function that is asked for."""


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  huge ints have no text, live objects may have a bad one
        return "a " + type(value).__name__


def _checker(compare: Dict[str, Any]) -> Any:
    if compare["mode"] != "checker":
        return None
    namespace: Dict[str, Any] = {"__name__": "checker"}
    try:
        exec(compile(compare["checker"], "checker.py", "exec", dont_inherit=True), namespace)
        return namespace["check"]
    except Exception as error:  # noqa: BLE001  the spec's code may raise anything
        raise SpecError(f"checker: {explain(error)}") from None


def _generator(source: str, name: str, rng: random.Random) -> Callable[[], List[Any]]:
    """Draws one list of arguments: from a function of the source, or from an expression that gives the one argument."""
    namespace: Dict[str, Any] = {"__name__": "generator", "random": random, "rng": rng}
    try:
        expression = compile(source.strip(), "generator.py", "eval", dont_inherit=True)
    except SyntaxError:
        exec(compile(source, "generator.py", "exec", dont_inherit=True), namespace)
        function = namespace[name]
        takes_rng = function.__code__.co_argcount > 0
        return lambda: list(function(rng) if takes_rng else function())
    return lambda: [eval(expression, namespace)]


def _reference(source: str, name: str, entry: str) -> Callable[..., Any]:
    """The reference of the source: a function of it, or its whole as the body of a function of `x`."""
    namespace: Dict[str, Any] = {"__name__": "reference"}
    try:
        code = compile(source, "reference.py", "exec", dont_inherit=True)
    except SyntaxError:
        body = textwrap.indent(textwrap.dedent(source), "    ")
        code = compile("def _reference(x):\n" + body, "reference.py", "exec", dont_inherit=True)
        name = "_reference"
    exec(code, namespace)
    found = namespace.get(name) or namespace.get(entry.split(".")[-1]) or namespace["reference"]
    return found  # type: ignore[no-any-return]  # whatever the source says
