"""Run a rollout again and say whether it came out the same."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from hotbed.cli.output import Output
from hotbed.wire.ledger import ReplayReport


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed replay`."""
    parser = commands.add_parser(
        "replay",
        help="run a rollout again and compare",
        description="Run a rollout again in a fresh fork of the same template, with the same seed, and compare. "
        "Exit code 0: identical; 1: it differs, and the first byte that does is named.",
    )
    parser.add_argument("id", metavar="ID", help="the rollout's id, or with --group the group's")
    parser.add_argument("--group", action="store_true", help="ID names a group: run every rollout of it again")
    return parser


def run(args: argparse.Namespace) -> int:
    """Run it again."""
    from hotbed.sdk.connect import connect

    output = Output.of(args)
    with connect() as client:
        if args.group:
            group = client.replay_group(args.id)
            answer, reports, identical = asdict(group), group.reports, group.identical
        else:
            report = client.replay(args.id)
            answer, reports, identical = asdict(report), (report,), report.identical
    if output.json:
        output.data(answer)
    else:
        tell(output, reports)
    return 0 if identical else 1


def tell(output: Output, reports: Sequence[ReplayReport]) -> None:
    """What came of it, a rollout a paragraph."""
    for report in reports:
        verdict = output.paint("identical", "green") if report.identical else output.paint("differs", "red")
        level = f"{report.determinism}, seed {report.seed[:16]}, ack {report.seed_ack}"
        output.line(f"{report.id}  {verdict}  ({level})")
        for item in report.differences:
            where = f" at byte {item.offset}" if item.offset is not None else ""
            output.line(f"  {item.what}{where}, likely {item.source}")
            output.line(f"    recorded {item.recorded!r}")
            output.line(f"    replayed {item.replayed!r}")
    if len(reports) > 1:
        same = sum(report.identical for report in reports)
        output.line(f"{same} of {len(reports)} identical")
