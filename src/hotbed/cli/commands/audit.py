"""What was done with rights that not everybody has."""

from __future__ import annotations

import argparse
import json

from hotbed.cli import paging
from hotbed.cli.output import Output
from hotbed.wire.usage import AuditRow


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed audit`."""
    parser = commands.add_parser(
        "audit",
        help="what admins did",
        description="The audit log of the server that HOTBED_URL names, or of this user's own, newest first: keys made "
        "and revoked, starts of the server, templates, and what admins ended. It takes an admin's key.",
    )
    paging.add_options(parser, limit=50)
    return parser


def run(args: argparse.Namespace) -> int:
    """List it."""
    from hotbed.sdk.accounts import audit
    from hotbed.sdk.connect import connect

    output = Output.of(args)
    with connect() as client:
        page = client.link.send(audit(**paging.asked(args)))
    return paging.show(output, page, ("WHEN", "WHO", "DID", "TO", "DETAILS"), page.actions, cells)


def cells(row: AuditRow) -> tuple[object, ...]:
    """A line of the table."""
    return row.at[:19].replace("T", " "), row.actor, row.action, row.target, brief(row.details)


def brief(details: object) -> str:
    """Details in a cell."""
    return json.dumps(details, ensure_ascii=False) if details else ""
