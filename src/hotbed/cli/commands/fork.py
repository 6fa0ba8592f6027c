"""Fork a live sandbox."""

from __future__ import annotations

import argparse

from hotbed.cli.output import Output


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed fork SANDBOX`."""
    parser = commands.add_parser(
        "fork",
        help="fork a live sandbox",
        description="Make sandboxes that start with the files of one as they are at one instant. They end with the "
        "client that holds the parent, or by their own times; what is no file stays behind and is named.",
    )
    parser.add_argument("sandbox", metavar="SANDBOX", help="its id, as `hotbed ps` shows it")
    parser.add_argument("-n", type=int, default=1, metavar="N", help="how many (1)")
    parser.add_argument(
        "--seed-mode", choices=("vanilla", "crn", "deterministic"), default="vanilla", help="their seeds (vanilla)"
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """Fork it."""
    from dataclasses import asdict

    from hotbed import connect
    from hotbed.sdk import live_calls
    from hotbed.wire.live import ForkSandbox

    output = Output.of(args)
    with connect() as client:
        made = client.link.send(live_calls.fork(args.sandbox, ForkSandbox(count=args.n, seed_mode=args.seed_mode)))
    if output.json:
        output.data(asdict(made))
        return 0
    for child in made.children:
        output.line(child.id)
    for what in made.skipped:
        output.talk(f"left behind: {what}")
    output.talk(f"group {made.group}: {len(made.children)} in {made.time_ms:.0f} ms, held still by {made.how}")
    return 0
