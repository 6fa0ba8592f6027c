"""List what the ledger holds."""

from __future__ import annotations

import argparse

from hotbed.cli import paging
from hotbed.cli.output import Output
from hotbed.wire.ledger import RolloutRow

_HEAD = ("ID", "WHEN", "KIND", "TEMPLATE", "STATUS", "REWARD", "MS", "LEVEL", "ACK", "SEED")
_FILTERS = ("template", "status", "kind", "sandbox_id", "group_id", "label")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed rollouts`."""
    parser = commands.add_parser(
        "rollouts",
        help="list what ran, newest first",
        description="List the ledger of the node that HOTBED_URL names, or of this user's own, newest first.",
    )
    paging.add_options(parser, limit=20, filters=_FILTERS)
    return parser


def run(args: argparse.Namespace) -> int:
    """List them."""
    from hotbed.sdk.connect import connect

    output = Output.of(args)
    with connect() as client:
        page = client.rollouts(**paging.asked(args, _FILTERS))
    return paging.show(output, page, _HEAD, page.rollouts, cells)


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
