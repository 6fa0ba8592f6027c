"""Copy what a node cannot make again."""

from __future__ import annotations

import argparse
from pathlib import Path

from hotbed.cli.commands.node import needing_node
from hotbed.cli.output import Output


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed backup`."""
    parser = commands.add_parser(
        "backup",
        help="copy keys and ledger",
        description="Copy the keys, their pepper and the ledger under HOTBED_HOME into a new directory, while the node "
        "goes on. To restore, stop the node and put the files back. A PostgreSQL database is for pg_dump.",
    )
    parser.add_argument("to", metavar="DIRECTORY", help="where to; it must not be there yet")
    parser.add_argument("--settings", metavar="FILE", help="a TOML file of settings")
    return parser


def run(args: argparse.Namespace) -> int:
    """Copy."""
    with needing_node():
        from hotbed.node.state.backup import back_up
        from hotbed.server.settings import read_settings
    settings = read_settings({"settings": args.settings})
    output, to = Output.of(args), Path(args.to).absolute()
    done = back_up(Path(settings.home).absolute(), to)
    if output.json:
        output.data({"directory": str(to), "files": done})
    else:
        for name in done:
            output.line(str(to / name))
    if settings.database:
        output.talk("keys and ledger are in a PostgreSQL database: back it up with pg_dump --schema=hotbed")
    return 0
