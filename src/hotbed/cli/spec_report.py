"""What a spec is worth, from verdicts on its gold solution, on nothing, and on mutants. Pure.

A spec is sound when the gold solution has full reward every time, nothing has none, the same seed gives the same
verdict, and the tests tell at least one mutant from the gold solution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from hotbed.cli.mutants import Mutant
from hotbed.grading import GradeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was graded. `again` is `first`, graded once more with the same seeds."""

    gold: Sequence[GradeResult]
    empty: GradeResult
    mutants: Sequence[tuple[Mutant, GradeResult]]
    first: Sequence[GradeResult]
    again: Sequence[GradeResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer; `problems` is empty for a sound spec."""

    gold_runs: int
    gold_full: int
    empty_reward: float | None
    mutants: int
    mutants_caught: int
    mutants_mean_reward: float | None
    survivors: tuple[str, ...]
    flaky: tuple[str, ...]
    unsealed: tuple[str, ...]
    never_executed: tuple[str, ...]
    never_failed: tuple[str, ...]
    repeatable: bool
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether there is nothing to mend."""
        return not self.problems

    def as_data(self) -> dict[str, object]:
        """For `--json`."""
        return {"sound": self.is_sound, **asdict(self)}


def report_of(found: Findings) -> Report:
    """The report."""
    valid = [(mutant, result) for mutant, result in found.mutants if result.reward is not None]
    rewards = [result.reward for _, result in valid if result.reward is not None]
    survivors = [f"line {mutant.line}: {mutant.what}" for mutant, result in valid if result.ok]
    return Report(
        gold_runs=len(found.gold),
        gold_full=sum(result.reward == 1.0 for result in found.gold),
        empty_reward=found.empty.reward,
        mutants=len(valid),
        mutants_caught=len(valid) - len(survivors),
        mutants_mean_reward=round(sum(rewards) / len(rewards), 6) if rewards else None,
        survivors=tuple(survivors),
        flaky=tuple(flaky_checks([*found.gold, *found.first[:1], *found.again[:1]])),
        unsealed=tuple(dict.fromkeys(result.trust_reason for result in found.gold if result.trust == "beside")),
        never_executed=tuple(_never(found.gold, ("not_run", "skipped"))),
        never_failed=tuple(_toothless(found.gold, [result for _, result in valid])),
        repeatable=is_repeatable(found),
        problems=tuple(_problems(found, survivors, len(valid))),
    )


def flaky_checks(results: Sequence[GradeResult]) -> list[str]:
    """Checks that came out differently for the same code."""
    outcomes: dict[str, set[str]] = {}
    for result in results:
        for check in result.checks:
            outcomes.setdefault(check.name, set()).add(check.outcome)
    return [name for name, seen in outcomes.items() if len(seen) > 1]


def is_repeatable(found: Findings) -> bool:
    """Whether the same seeds gave the same verdicts."""
    pairs = zip(found.first, found.again, strict=True)
    return all(_verdict(one) == _verdict(other) for one, other in pairs)


def _verdict(result: GradeResult) -> object:
    return result.reward, result.status, [(check.name, check.outcome) for check in result.checks]


def _never(results: Sequence[GradeResult], outcomes: tuple[str, ...]) -> list[str]:
    ran = {check.name for result in results for check in result.checks if check.outcome not in outcomes}
    names = dict.fromkeys(check.name for result in results for check in result.checks)
    return [name for name in names if name not in ran]


def _toothless(gold: Sequence[GradeResult], mutants: Sequence[GradeResult]) -> list[str]:
    """Checks that no mutant failed. Says something only where there were mutants, and several checks."""
    names = dict.fromkeys(check.name for result in gold for check in result.checks)
    failed = {check.name for result in mutants for check in result.checks if check.outcome != "passed"}
    silent = any(not result.checks for result in mutants)
    return [] if silent or not mutants else [name for name in names if name not in failed]


def _problems(found: Findings, survivors: Sequence[str], mutants: int) -> Iterator[str]:
    invalid = next((r for r in [*found.gold, found.empty, *found.first] if r.reward is None), None)
    if invalid is not None:
        yield f"not every candidate has a verdict ({invalid.status}): {invalid.reason}"
    full = sum(result.reward == 1.0 for result in found.gold)
    if full < len(found.gold):
        bad = next(result for result in found.gold if result.reward != 1.0)
        yield f"the gold solution scored 1.0 in {full} of {len(found.gold)} runs; {bad.status}: {bad.reason}"
    if found.empty.reward:
        yield f"an empty candidate scored {found.empty.reward:g}"
    if not is_repeatable(found):
        yield "the same seed gave different verdicts"
    if mutants and len(survivors) == mutants:
        yield f"none of {mutants} mutants of the gold solution failed a check"
    never = _never(found.gold, ("not_run", "skipped"))
    if never:
        yield (
            f"{len(never)} checks are never executed, not even by the gold solution, so nobody can pass: "
            f"{', '.join(never[:3])}; take them out, or out of their branch"
        )
