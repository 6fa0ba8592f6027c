"""What was done with rights that not everybody has."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from hotbed.cli.output import Output


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed audit`."""
    parser = commands.add_parser(
        "audit",
        help="what admins did",
        description="The audit log of the server that HOTBED_URL names, or of this user's own, newest first: keys made "
        "and revoked, starts of the server, templates, and what admins ended. It takes an admin's key.",
    )
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="how many lines (default: 50)")
    parser.add_argument("--before", type=int, metavar="SEQ", help="only lines before this one: the next page")
    return parser


def run(args: argparse.Namespace) -> int:
    """List it."""
    from hotbed.sdk.accounts import audit
    from hotbed.sdk.connect import connect

    output = Output.of(args)
    with connect() as client:
        page = client.link.send(audit(limit=args.limit, before=args.before))
    if output.json:
        output.data(asdict(page))
        return 0
    rows = [
        (row.at[:19].replace("T", " "), row.actor, row.action, row.target, brief(row.details)) for row in page.actions
    ]
    output.table(("WHEN", "WHO", "DID", "TO", "DETAILS"), rows)
    if page.next is not None:
        output.talk(f"more with --before {page.next}")
    return 0


def brief(details: object) -> str:
    """Details in a cell."""
    return json.dumps(details, ensure_ascii=False) if details else ""
