"""List what the ledger holds."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from hotbed.cli.output import Output
from hotbed.wire.ledger import RolloutRow

_FILTERS = ("template", "status", "kind", "sandbox_id", "group_id", "label")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed rollouts`."""
    parser = commands.add_parser(
        "rollouts",
        help="list what ran, newest first",
        description="List the ledger of the node that HOTBED_URL names, or of this user's own, newest first.",
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
        page = client.rollouts(limit=args.limit, before=args.before, **where)
    if output.json:
        output.data(asdict(page))
        return 0
    output.table(
        ("ID", "WHEN", "KIND", "TEMPLATE", "STATUS", "REWARD", "MS", "LEVEL", "ACK", "SEED"),
        [cells(row) for row in page.rollouts],
    )
    if page.next is not None:
        output.talk(f"more with --before {page.next}")
    return 0


def cells(row: RolloutRow) -> tuple[object, ...]:
    """A line of the table."""
    return (
        row.id,
        row.at[:19].replace("T", " "),
        row.kind,
        row.template,
        row.status,
        "" if row.reward is None else f"{row.reward:g}",
        f"{row.total_ms:.1f}",
        row.determinism,
        row.seed_ack,
        row.seed[:12],
    )
