"""Attempts to be paid for nothing: the claims on grading, tried on this host by a node of its own.

They are made above the runtime, for a verdict needs a node and a client. `hotbed doctor --self-check` runs them after
the runtime's own attempts, and tests/escape runs the same ones.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hotbed.cli import grading_hacks as hacks
from hotbed.errors import Error
from hotbed.grading import CallLimits, CommandReward, GradeResult, PropertyReward, StdioReward, UnitTestReward
from hotbed.runtime.selfcheck.bench import Broken, hold
from hotbed.runtime.selfcheck.table import Verdict
from hotbed.sdk.client import Client
from hotbed.sdk.connect import connect
from hotbed.sdk.embedded import NodePlace, start_node
from hotbed.sdk.grading import grade, grade_batch

SPEC = UnitTestReward(
    tests="assert solve(20) == 41207\nassert solve(21) == 51939\n", limits=CallLimits(cpu_s=2, total_s=10)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingAttempt:
    """One claim and what is done to it. `run` raises `Broken` where it does not hold."""

    claim: str
    run: Callable[[Client], None]


def find(claim: str) -> GradingAttempt:
    """The attempt on a claim. Raises `KeyError`."""
    return {attempt.claim: attempt for attempt in ATTEMPTS}[claim]


def run_all() -> Iterator[Verdict]:
    """Run the attempts one after the other on a node that nobody else uses, telling each verdict as it comes."""
    with own_client() as client:
        for attempt in ATTEMPTS:
            began, detail = time.monotonic(), ""
            try:
                attempt.run(client)
            except (Broken, Error) as error:
                detail = str(error) or type(error).__name__
            yield Verdict(claim=attempt.claim, held=not detail, detail=detail, seconds=time.monotonic() - began)


@contextmanager
def own_client() -> Iterator[Client]:
    """A client of a node in a directory of its own, which ends with it."""
    directory = tempfile.mkdtemp(prefix="hotbed-selfcheck-")
    try:
        place = NodePlace(directory=directory)
        start_node(place, home=directory)
        with connect(unix_socket=place.socket) as client:
            yield client
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def rewards_are(results: list[GradeResult], expected: list[float]) -> None:
    """Hold that these are the rewards, or tell which candidate got something else."""
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        hold(result.reward == wanted, f"candidate {index} got {result.reward} ({result.status}: {result.reason})")


def forge_verdicts(client: Client) -> None:
    """The classics: each is paid by a grader that believes an exit code, a patched module or an overloaded `==`."""
    results = grade_batch([*hacks.CLASSICS, hacks.HONEST], SPEC, client=client)
    rewards_are(results, [0.0] * len(hacks.CLASSICS) + [1.0])
    for style, candidate, tests in hacks.PLANTED:
        rewards_are([grade(candidate, UnitTestReward(style=style, tests=tests), client=client)], [0.0])


def hunt_secrets(client: Client) -> None:
    """It looks for what it is tested on: in its files, its environment, its heap and whatever memory it may read."""
    spec = UnitTestReward(
        tests="# marker-71\nexpected = 'marker-71'\nassert hunt() == 0, 'found'\n",
        support="# marker-71\n",
        limits=CallLimits(cpu_s=30, total_s=90),
    )
    guess = PropertyReward(reference="def solve(x):\n    return x\n", generator="random.random()", k=4, seed="ab" * 32)
    rewards_are([grade(hacks.HUNTER, spec, client=client)], [1.0])
    rewards_are([grade(hacks.GUESSER, guess, client=client)], [0.0])


def forge_answers(client: Client) -> None:
    """Answers queued ahead, answers to other questions, noise, a flood: into the channel itself."""
    forgers = [hacks.CHANNEL + forger for forger in hacks.FORGERS]
    rewards_are(grade_batch([*forgers, hacks.HONEST], SPEC, client=client), [0.0] * len(forgers) + [1.0])


def tell_siblings(client: Client) -> None:
    """The first leaves answers wherever it can write, and a process that waits; the others look for them."""
    judge = UnitTestReward(tests="import glob\nassert not glob.glob('/tmp/answers')\nassert solve(20) == 41207\n")
    rewards_are(grade_batch([hacks.LEAVER, hacks.FINDER, hacks.FINDER], SPEC, client=client), [1.0, 0.0, 0.0])
    rewards_are([grade(hacks.LEAVER, judge, client=client)], [1.0])


def turn_against_the_tests(client: Client) -> None:
    """What tests hand over, a path, a mock, an object, an exception: it leads to nothing else, and serves no hack."""
    for style, candidate, tests in hacks.HANDED_OVER:
        spec = UnitTestReward(tests=tests, style=style)
        result = grade(candidate, spec, client=client)
        hold(result.reward == 0.0, f"{candidate!r} got {result.reward} ({result.reason})")


def leave_in_the_judge(client: Client) -> None:
    """A judge's sandbox may serve several groups of one client: whatever tests leave is gone, or the sandbox is."""
    for leaving in hacks.TESTS_THAT_LEAVE:
        for tests in (leaving, hacks.TESTS_THAT_LOOK, hacks.TESTS_THAT_LOOK):
            spec = UnitTestReward(tests=tests + "assert solve(20) == 41207\n")
            result = grade(hacks.HONEST, spec, client=client, on_infra_error="none")
            # Tests that kill all they can reach have killed their judge too, where it is not the first process.
            allowed = (1.0, None) if "kill(-1" in tests else (1.0,)
            hold(result.reward in allowed, f"after {leaving!r}: {result.reward} ({result.reason})")


def choose_the_failure(client: Client) -> None:
    """Every way to die, to lie about it, and to be in the way: a number comes out, never None."""
    results = grade_batch([*hacks.DYING, {"other.py": "x"}], SPEC, client=client, on_infra_error="none")
    rewards_are(results, [0.0] * len(results))
    programs = StdioReward(cases=[{"stdout": "1"}] * 2, limits=CallLimits(memory_mib=256))
    ran = grade_batch(hacks.DYING_PROGRAMS, programs, client=client, on_infra_error="none")
    rewards_are(ran, [0.0] * len(ran))
    repository = CommandReward(command="true", hidden={"test_a.py": ""})
    deep = grade_batch([hacks.DEEP, {"solution.py": ""}], repository, client=client, on_infra_error="none")
    hold(deep[0].reward is not None and deep[1].reward == 1.0, f"deep folders: {deep[0].reason}, {deep[1].reason}")


ATTEMPTS = (
    GradingAttempt(claim="verdicts-formed-elsewhere", run=forge_verdicts),
    GradingAttempt(claim="candidates-hold-no-secret", run=hunt_secrets),
    GradingAttempt(claim="forged-answers-refused", run=forge_answers),
    GradingAttempt(claim="siblings-share-nothing", run=tell_siblings),
    GradingAttempt(claim="what-tests-hand-over-leads-nowhere", run=turn_against_the_tests),
    GradingAttempt(claim="jobs-leave-nothing-to-the-next", run=leave_in_the_judge),
    GradingAttempt(claim="failures-cannot-be-chosen", run=choose_the_failure),
)
