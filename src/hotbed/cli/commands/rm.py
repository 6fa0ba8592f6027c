"""End sandboxes, one or many."""

from __future__ import annotations

import argparse

from hotbed.cli.commands.run import variables
from hotbed.cli.output import Output
from hotbed.errors import InvalidRequest


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed rm`."""
    parser = commands.add_parser(
        "rm",
        help="end sandboxes",
        description="End every sandbox of which all that is given holds, on the node that HOTBED_URL names, or on this "
        "user's own. Starts no node.",
    )
    parser.add_argument("ids", nargs="*", metavar="ID", help="sandboxes by id")
    parser.add_argument("--group", metavar="NAME", help="those of a group")
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help="with a label; repeatable")
    parser.add_argument("--lease", metavar="ID", help="made under a lease")
    return parser


def run(args: argparse.Namespace) -> int:
    """End them; whether there were any."""
    from hotbed.sdk.connect import connect_if_running

    output = Output.of(args)
    if not (args.ids or args.group or args.label or args.lease):
        raise InvalidRequest("nothing says which sandboxes", hint="give ids, --group, --label or --lease")
    client = connect_if_running()
    ended: tuple[str, ...] = ()
    if client is not None:
        with client:
            labels = variables(args.label, option="--label")
            ended = client.delete_sandboxes(*args.ids, labels=labels, group=args.group, lease_id=args.lease)
    if output.json:
        output.data({"ended": list(ended)})
    else:
        for name in ended:
            output.line(name)
    return 0 if ended else 1
