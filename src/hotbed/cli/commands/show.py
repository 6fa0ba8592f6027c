"""Show one line of the ledger, whole."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from hotbed.cli.output import Output


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed show`."""
    parser = commands.add_parser(
        "show",
        help="show one rollout: what was asked, what came of it",
        description="Show a rollout's request, output, seed and times. Any beginning of an id that is unique will do.",
    )
    parser.add_argument("id", metavar="ID", help="the rollout's id, as `hotbed rollouts` lists it")
    return parser


def run(args: argparse.Namespace) -> int:
    """Show it."""
    from hotbed.sdk.connect import connect

    output = Output.of(args)
    with connect() as client:
        detail = client.rollout(args.id)
    if output.json:
        output.data(asdict(detail))
        return 0
    output.pairs({name: value for name, value in asdict(detail.row).items() if value not in ("", None)})
    output.line()
    output.line(json.dumps(detail.request, indent=2, ensure_ascii=False))
    for name, text, data in (
        ("stdout", detail.stdout, detail.stdout_b64),
        ("stderr", detail.stderr, detail.stderr_b64),
    ):
        if text or data:
            output.line(f"--- {name}")
            output.line((text if data is None else data.decode("utf-8", "backslashreplace")).rstrip("\n"))
    if detail.details:
        output.line("--- details")
        output.line(json.dumps(detail.details, indent=2, ensure_ascii=False))
    return 0
