"""Whole repositories: what to do in the candidate's sandbox, in order, and the verdict on what came of it. Pure.

The order is the argument: the candidate's files (or patch) are the last bytes of it that arrive; `setup` runs; every
process it left is killed; only then are the hidden files written over whatever is there and planted configuration is
removed; then the command runs. What it prints and returns is still the word of a sandbox that ran the candidate, so the
result is `trust="beside"`, always. Only expected tests that the report says passed count; skips and extras do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from hotbed.errors import InvalidSpec
from hotbed.grading.outputs import RunOutcome
from hotbed.grading.programs import CommandReward
from hotbed.grading.verdicts import Check, GradeResult, Outcome, Status, reward_of

REPORT_LIMIT = 16 << 20
BESIDE = "the tests ran in the sandbox that ran the candidate"
PATCH_PATH = ".hotbed-candidate.patch"
_APPLY = f"git apply --whitespace=nowarn {PATCH_PATH} || patch -p1 --batch --forward < {PATCH_PATH}"
#: pytest without what a repository could plant for it.
_ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do in the sandbox; exactly one of the fields is set.

    `write`: path below `cwd` -> text. `run`: a shell command. `kill`: every process but the agent. `remove`: files of
    these names anywhere below `cwd`, except the paths in `keep`.
    """

    write: Mapping[str, str] | None = None
    run: str = ""
    kill: bool = False
    remove: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    is_candidate: bool = False  # its failure is the candidate's, not the spec's


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPlan:
    """The steps before the tests, the tests, and where their report will be."""

    before: tuple[Step, ...]
    command: str
    environment: Mapping[str, str]
    cwd: str
    report: str
    timeout_s: float


def plan_of(spec: CommandReward, candidate: str | Mapping[str, str]) -> CommandPlan:
    """What grading one candidate takes."""
    steps = [Step(write=spec.files)] if spec.files else []
    if spec.patch:
        if not isinstance(candidate, str):
            raise InvalidSpec("the candidate must be a patch in text form for patch=True")
        steps += [Step(write={PATCH_PATH: candidate}), Step(run=_APPLY, is_candidate=True)]
    else:
        files = {spec.candidate_path: candidate} if isinstance(candidate, str) else dict(candidate)
        steps.append(Step(write=files, is_candidate=True))
    if spec.setup:
        steps.append(Step(run=spec.setup, is_candidate=True))
    steps.append(Step(kill=True))
    kept = tuple(name for name in spec.files if _base(name) in spec.protected)
    steps.append(Step(remove=spec.protected, keep=kept, is_candidate=True))
    if spec.report:
        steps.append(Step(remove=(_base(spec.report),), is_candidate=True))
    restored = {name: text for name, text in spec.files.items() if _base(name) in spec.protected}
    steps.append(Step(write={**restored, **spec.hidden}))
    return CommandPlan(
        before=tuple(steps),
        command=spec.command,
        environment=_ENVIRONMENT,
        cwd=spec.cwd,
        report=spec.report,
        timeout_s=spec.limits.call_wall_s,
    )


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def command_result(spec: CommandReward, outcome: RunOutcome, report: bytes | None) -> GradeResult:
    """The result of the tests' run. Whatever they did, it is a number: the candidate was there."""
    if not spec.expected:
        passed: Outcome = "passed" if outcome.status == "ok" else "failed"
        checks = [Check(name="exit status", outcome=passed, message=f"{outcome.status} ({outcome.exit_code})")]
    else:
        found = {} if report is None else read_report(report)
        checks = [Check(name=name, outcome=found.get(_key(name), "not_run")) for name in spec.expected]
    good = sum(check.outcome == "passed" for check in checks)
    status: Status = _STATUS.get(outcome.status, "ok" if good == len(checks) else "failed")
    first = next(
        (f"{check.name}: {check.message or check.outcome}" for check in checks if check.outcome != "passed"), ""
    )
    return GradeResult(
        reward=reward_of([check.outcome for check in checks], partial=spec.partial)
        if status in ("ok", "failed")
        else 0.0,
        passed=good,
        total=len(checks),
        checks=tuple(checks),
        status=status,
        reason=first if status != "ok" else "",
        trust="beside",
        trust_reason=BESIDE,
    )


_STATUS: dict[str, Status] = {"timeout": "timeout", "oom": "oom", "output": "output_limit"}


def read_report(report: bytes) -> dict[tuple[str, str], Outcome]:
    """(class, name) -> outcome of a JUnit file that nobody vouches for; a test that is in it twice has not passed."""
    if len(report) > REPORT_LIMIT or b"<!" in report.replace(b"<![CDATA[", b"").replace(b"<!--", b""):
        return {}
    try:
        root = ElementTree.fromstring(report)
    except (ElementTree.ParseError, ValueError, LookupError):
        return {}
    found: dict[tuple[str, str], Outcome] = {}
    for case in root.iter("testcase"):
        key = (case.get("classname", ""), case.get("name", ""))
        found[key] = "failed" if key in found else _outcome({child.tag for child in case})
    return found


def _outcome(tags: set[str]) -> Outcome:
    for tag, outcome in _TAGS:
        if tag in tags:
            return outcome
    return "passed" if tags <= {"properties", "system-out", "system-err"} else "failed"


_TAGS: tuple[tuple[str, Outcome], ...] = (("error", "error"), ("failure", "failed"), ("skipped", "skipped"))


def _key(node_id: str) -> tuple[str, str]:
    """A pytest node id as JUnit writes it: tests/test_a.py::TestB::test_c[1] is class tests.test_a.TestB."""
    head, bracket, parameters = node_id.partition("[")
    path, *rest = head.split("::")
    module = path.removesuffix(".py").replace("/", ".")
    return ".".join([module, *rest[:-1]]), (rest[-1] if rest else "") + bracket + parameters
