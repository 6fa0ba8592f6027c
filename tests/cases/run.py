"""Grade every line of case files and compare with what each expects: `python tests/cases/run.py FILE...`.

One line a case on stdout; the exit status is 1 if any differs. Needs a node (one is started if none runs): candidates
are graded in sandboxes, which also lets the dangerous ones run. Nothing but the published API is used.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import hotbed
from hotbed.errors import Error, InvalidSpec
from hotbed.grading import GradeResult, extract
from hotbed.grading.verdicts import spec_failure
from tests.cases.reading import candidates_of, read_cases, spec_from_case

Graded = tuple[list[GradeResult], float]


def main(paths: list[str]) -> int:
    """Run all files; 0 when everything is as expected, 1 when something differs, 2 for no files."""
    if not paths:
        sys.stderr.write("usage: python tests/cases/run.py FILE...\n")
        return 2
    client = hotbed.connect()
    wrong = 0
    with client:
        for case in (case for path in paths for case in read_cases(Path(path))):
            started = time.monotonic()
            problems = list(_problems(case, client))
            wrong += bool(problems)
            took = time.monotonic() - started
            sys.stdout.write(f"{'ok  ' if not problems else 'FAIL'} {case['id']} {took:.2f}s {'; '.join(problems)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{wrong} differ\n")
    return 1 if wrong else 0


def _problems(case: Mapping[str, Any], client: Any) -> Iterator[str]:
    """What is not as the case expects; one that cannot be graded at all is told like the others."""
    try:
        yield from differences(case, client)
    except (Error, LookupError, TypeError, ValueError) as error:
        yield f"not graded: {type(error).__name__}: {error}"


def differences(case: Mapping[str, Any], client: Any) -> Iterator[str]:
    """What is not as the case expects."""
    if case["spec"]["type"] == "extract":
        yield from _extracted(case)
        return
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    results = _graded(case, client)
    yield from _rewards(case["expect"], results)
    yield from _surroundings(case["expect"], results, time.monotonic() - started, rss)
    if case["expect"].get("grader_must_survive"):
        yield from (f"afterwards: {text}" for text in _still_grades(client))


def _extracted(case: Mapping[str, Any]) -> Iterator[str]:
    spec = case["spec"]
    found = extract(case["completion"], entry=spec.get("entry"), language=spec.get("language", "python"))
    wanted = case["expect"]["code"]
    if (found.code and found.code.strip()) != (wanted and wanted.strip()):
        yield f"extracted {found.code!r} ({found.reason})"


def _graded(case: Mapping[str, Any], client: Any) -> list[GradeResult]:
    try:
        spec = spec_from_case(case)
    except InvalidSpec as error:
        return [spec_failure(str(error))]
    results: list[GradeResult] = hotbed.grade_batch(candidates_of(case), spec, client=client, on_infra_error="none")
    return results


def _rewards(expect: Mapping[str, Any], results: list[GradeResult]) -> Iterator[str]:
    rewards = [result.reward for result in results]
    said = f"{[(r.reward, r.status, r.reason) for r in results]}"
    if "reward" in expect and rewards != [expect["reward"]] * len(results):
        yield f"rewards {said}, expected {expect['reward']}"
    if "rewards" in expect and rewards != expect["rewards"]:
        yield f"rewards {said}, expected {expect['rewards']}"
    if "reward_max" in expect and any(reward is None or reward > expect["reward_max"] for reward in rewards):
        yield f"rewards {said}, expected at most {expect['reward_max']}"
    if "reward_binary" in expect and any(float(r.status == "ok") != expect["reward_binary"] for r in results):
        yield f"all or nothing {said}, expected {expect['reward_binary']}"
    if "status" in expect and any(result.status != expect["status"] for result in results):
        yield f"status {said}, expected {expect['status']}"
    if "status_not" in expect and any(result.status == expect["status_not"] for result in results):
        yield f"status {said}, expected another"


def _surroundings(expect: Mapping[str, Any], results: list[GradeResult], took: float, rss: int) -> Iterator[str]:
    if took > expect.get("wall_s_max", took):
        yield f"took {took:.1f} s, expected at most {expect['wall_s_max']}"
    if "must_not_exist" in expect and Path(expect["must_not_exist"]).exists():
        yield f"{expect['must_not_exist']} exists"
    if "no_survivors" in expect and (left := _processes(expect["no_survivors"].split()[-1])):
        yield f"processes left: {left}"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss) / 1024
    if grown > expect.get("grader_rss_growth_mb_max", grown):
        yield f"grew by {grown:.0f} MB"
    hidden = expect.get("observation_must_not_contain")
    if hidden and any(hidden in json.dumps(dict(result.sandbox)) for result in results):
        yield "the hidden tests are in what the candidate printed"


def _processes(marker: str) -> list[str]:
    """Processes with a marker among their arguments, on the whole host."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def _still_grades(client: Any) -> Iterator[str]:
    spec = hotbed.UnitTestReward(tests="assert solve(1) == 2")
    result = hotbed.grade("def solve(x): return x + 1", spec, client=client)
    if result.reward != 1.0:
        yield f"a right answer scored {result.reward} ({result.reason})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
