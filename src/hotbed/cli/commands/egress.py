"""List what sandboxes tried on the network."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from hotbed.cli.output import Output
from hotbed.wire.egress import EgressRow

_FILTERS = ("sandbox_id", "rollout_id", "template", "kind", "name", "verdict")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed egress`."""
    parser = commands.add_parser(
        "egress",
        help="list what sandboxes tried on the network",
        description="List what sandboxes tried on the network and what was decided, newest first.",
    )
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many lines (default: 20)")
    parser.add_argument("--before", type=int, metavar="SEQ", help="only lines before this one: the next page")
    for name in _FILTERS:
        option = f"--{name.removesuffix('_id')}"
        parser.add_argument(option, dest=name, metavar="TEXT", help=f"only where {name} is this")
    return parser


def run(args: argparse.Namespace) -> int:
    """List them."""
    from hotbed.sdk.connect import connect

    output = Output.of(args)
    where = {name: value for name in _FILTERS if (value := getattr(args, name)) is not None}
    with connect() as client:
        page = client.egress(limit=args.limit, before=args.before, **where)
    if output.json:
        output.data(asdict(page))
        return 0
    output.table(
        ("WHEN", "VERDICT", "KIND", "TO", "PORT", "N", "UP", "DOWN", "LEAK", "WHY", "WHOSE"),
        [cells(row) for row in page.attempts],
    )
    if page.next is not None:
        output.talk(f"more with --before {page.next}")
    return 0


def cells(row: EgressRow) -> tuple[object, ...]:
    """A line of the table."""
    return (
        row.at[:19].replace("T", " "),
        row.verdict,
        f"{row.kind} {row.method}".strip(),
        row.name or row.address,
        row.port or "",
        row.count,
        row.bytes_up,
        row.bytes_down,
        "yes" if row.leak else "",
        row.reason,
        row.rollout_id or row.sandbox_id,
    )
