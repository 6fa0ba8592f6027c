"""Look at a reward spec before it pays anybody: does it pay its gold solution, every time, and nothing else?"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotbed.cli.candidates import read_spec, read_text
from hotbed.cli.mutants import mutants
from hotbed.cli.output import Output, Progress
from hotbed.cli.spec_report import Findings, Report, report_of
from hotbed.errors import InvalidRequest
from hotbed.grading import GradeResult, Spec, seed_from_key

_MUTANT_CPU_S = 2.0
_MUTANT_TOTAL_S = 10.0
_SEEDED = 4  # programs that are graded twice with one seed


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed spec check`."""
    parser = commands.add_parser(
        "spec",
        help="check a reward spec against its gold solution",
        description="Grade the gold solution several times, nothing at all, and mutants of the gold solution. Exit "
        "code 0: the gold solution scores 1.0 every time, nothing scores 0, the same seed gives the same verdict, and "
        "the tests catch mutants; 1: not so, and the report says what.",
    )
    parser.add_argument("action", choices=["check"], help="what to do with it")
    parser.add_argument("--spec", required=True, metavar="FILE", help="the reward spec, JSON")
    parser.add_argument("--gold", required=True, metavar="PATH", help="the solution that must pass: a file or a folder")
    parser.add_argument("--n", type=int, default=5, metavar="N", help="how often the gold solution is graded (5)")
    parser.add_argument("--mutants", type=int, default=16, metavar="N", help="at most so many mutants (16)")
    parser.add_argument("--seed", metavar="SEED", help="64 hex characters for the runs that must agree")
    return parser


def run(args: argparse.Namespace) -> int:
    """Check it."""
    output = Output.of(args)
    if args.n < 1 or args.mutants < 0:
        raise InvalidRequest("--n must be at least 1, and --mutants at least 0")
    spec, gold = read_spec(args.spec), read_gold(args.gold)
    report = report_of(examine(args, spec, gold))
    if output.json:
        output.data(report.as_data())
    else:
        tell(output, report)
    return 0 if report.is_sound else 1


def read_gold(path: str) -> str | dict[str, str]:
    """One file, or every file of a folder by its name there."""
    folder = Path(path)
    if not folder.is_dir():
        return read_text(path)
    names = sorted(each for each in folder.rglob("*") if each.is_file() and "__pycache__" not in each.parts)
    return {str(each.relative_to(folder)): read_text(str(each)) for each in names}


def examine(args: argparse.Namespace, spec: Spec, gold: str | dict[str, str]) -> Findings:
    """Have everything graded that the report needs."""
    from hotbed import connect, grade_batch

    changed = mutants(gold, limit=args.mutants) if isinstance(gold, str) else []
    seed = args.seed or seed_from_key("hotbed spec check")
    total = args.n + 1 + len(changed) + 2 * _SEEDED
    with connect() as client, Progress("checking", total) as progress:

        def graded(codes: Sequence[Any], by: Spec = spec, **options: Any) -> list[GradeResult]:
            told: Callable[[int, int], object] = lambda done, total: progress.advance()  # noqa: E731  one line, one use
            return grade_batch(codes, by, client=client, on_infra_error="none", progress=told, **options)

        found = list(zip(changed, graded([mutant.code for mutant in changed], hasty(spec)), strict=True))
        timely = [mutant.code for mutant, result in found if result.status in ("ok", "failed")]
        seeded = [gold, *timely][:_SEEDED]
        return Findings(
            gold=graded([gold] * args.n),
            empty=graded([empty_of(gold)])[0],
            mutants=found,
            first=graded(seeded, seeds=[seed] * len(seeded)),
            again=graded(seeded, seeds=[seed] * len(seeded)),
        )


def empty_of(gold: str | dict[str, str]) -> str | dict[str, str]:
    """A candidate with nothing in it."""
    return "" if isinstance(gold, str) else dict.fromkeys(gold, "")


def hasty(spec: Spec) -> Spec:
    """The spec with little patience: mutants like to loop, and a loop is as good as a wrong answer."""
    limits = spec.limits
    cpu_s, total_s = min(limits.cpu_s, _MUTANT_CPU_S), min(limits.candidate_wall_s, _MUTANT_TOTAL_S)
    return replace(spec, limits=replace(limits, cpu_s=cpu_s, wall_s=None, total_s=total_s))


def tell(output: Output, report: Report) -> None:
    """The report, for a person."""
    mean = report.mutants_mean_reward
    output.pairs(
        {
            "gold": f"1.0 in {report.gold_full} of {report.gold_runs} runs",
            "empty": "no verdict" if report.empty_reward is None else f"{report.empty_reward:g}",
            "mutants": "none"
            if mean is None
            else f"{report.mutants_caught} of {report.mutants} caught, mean {mean:.3g}",
            "same seed": "same verdict" if report.repeatable else "another verdict",
        }
    )
    for title, names in (
        ("not caught", report.survivors),
        ("flaky", report.flaky),
        ("not sealed", report.unsealed),
        ("never executed", report.never_executed),
        ("never failed by a mutant", report.never_failed),
    ):
        for name in names:
            output.line(f"  {title}: {name}")
    for problem in report.problems:
        output.line(output.paint(f"problem: {problem}", "red"))
    output.line(output.paint("the spec is sound", "green") if report.is_sound else "the spec is not sound")
