"""Keep the files of a live sandbox; list and free what is kept."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hotbed.cli.commands.ps import span
from hotbed.cli.output import Output
from hotbed.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from hotbed.sdk.client import Client


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed snapshot [SANDBOX]`."""
    parser = commands.add_parser(
        "snapshot",
        help="keep a sandbox's files; list and free snapshots",
        description="Keep a live sandbox's files as they are now, for Sandbox.from_snapshot. Without SANDBOX, list the "
        "snapshots that live, those of pools too.",
    )
    parser.add_argument("sandbox", nargs="?", metavar="SANDBOX", help="its id, as `hotbed ps` shows it")
    parser.add_argument("--end", action="store_true", help="end the sandbox with it; then nothing is copied")
    parser.add_argument("--free", metavar="ID", help="let go of a snapshot instead")
    return parser


def _free(client: Client, name: str) -> int:
    """Let go of one that there is."""
    if all(row.id != name for row in client.snapshots()):
        raise NotFound(f"there is no snapshot {name[:80]!r}", hint="`hotbed snapshot` lists them")
    client.free_snapshot(name)
    return 0


def run(args: argparse.Namespace) -> int:
    """Take, list or free."""
    from dataclasses import asdict

    from hotbed import connect
    from hotbed.sdk import live_calls

    output = Output.of(args)
    if args.free and args.sandbox:
        raise InvalidRequest("--free and SANDBOX are two requests", hint="give one of them")
    with connect() as client:
        if args.free:
            return _free(client, args.free)
        if args.sandbox is None:
            rows = client.snapshots()
        else:
            rows = (client.link.send(live_calls.snapshot(args.sandbox, end=args.end)),)
    if output.json:
        output.data({"snapshots": [asdict(row) for row in rows]})
    elif args.sandbox is not None:
        output.line(rows[0].id)
        for what in rows[0].skipped:
            output.talk(f"left behind: {what}")
    else:
        head = ("ID", "OF", "TEMPLATE", "MIB", "AGE")
        output.table(head, [(r.id, r.sandbox or r.pool, r.template, r.size >> 20, span(r.age_s)) for r in rows])
    return 0
