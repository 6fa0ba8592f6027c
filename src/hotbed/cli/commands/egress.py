"""List what sandboxes tried on the network."""

from __future__ import annotations

import argparse

from hotbed.cli import paging
from hotbed.cli.output import Output
from hotbed.wire.egress import EgressRow

_HEAD = ("WHEN", "VERDICT", "KIND", "TO", "PORT", "N", "UP", "DOWN", "LEAK", "WHY", "WHOSE")
_FILTERS = ("sandbox_id", "rollout_id", "template", "kind", "name", "verdict")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed egress`."""
    parser = commands.add_parser(
        "egress",
        help="list what sandboxes tried on the network",
        description="List what sandboxes tried on the network and what was decided, newest first.",
    )
    paging.add_options(parser, limit=20, filters=_FILTERS)
    return parser


def run(args: argparse.Namespace) -> int:
    """List them."""
    from hotbed.sdk.connect import connect

    output = Output.of(args)
    with connect() as client:
        page = client.egress(**paging.asked(args, _FILTERS))
    return paging.show(output, page, _HEAD, page.attempts, cells)


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
