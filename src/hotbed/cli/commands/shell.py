"""A terminal in a sandbox."""

from __future__ import annotations

import argparse
import os
import sys

from hotbed.cli.commands.run import exit_code, variables
from hotbed.cli.output import Output
from hotbed.cli.terminal import attached, size_here
from hotbed.errors import InvalidRequest

DAY_S = 24 * 3600.0


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed shell TEMPLATE [-- CMD]`."""
    parser = commands.add_parser(
        "shell",
        help="a terminal in a sandbox",
        usage="hotbed shell TEMPLATE [option ...] [-- CMD [ARG ...]]",
        description="Fork a template and talk to a shell, or a command, on a terminal inside; discard it at the end.",
        epilog="The exit code is the program's, as for `hotbed run`. Where standard input is no terminal, the program "
        "gets none either, and what is piped in is its input.",
    )
    parser.add_argument("template", nargs="?", metavar="TEMPLATE", help="what to fork: python, python-numpy, or yours")
    parser.add_argument("--sandbox", metavar="ID", help="use this sandbox, and leave it alive")
    parser.add_argument(
        "--timeout", type=float, default=DAY_S, metavar="SECONDS", help="kill it after this long (a day)"
    )
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="set a variable; repeatable")
    parser.add_argument("--cwd", metavar="DIR", help="start it here (/work)")
    return parser


def shell(*, on_terminal: bool) -> list[str]:
    """The best shell of the template; one that is piped to prompts nobody."""
    how = " -i" if on_terminal else ""
    return ["/bin/sh", "-c", f"command -v bash >/dev/null 2>&1 && exec bash{how} || exec sh{how}"]


def run(args: argparse.Namespace) -> int:
    """Talk to it until it ends."""
    from hotbed import Sandbox, connect

    output = Output.of(args)
    if (args.template is None) == (args.sandbox is None):
        raise InvalidRequest("give a template to fork, or --sandbox ID", hint="hotbed shell python")
    on_terminal = os.isatty(sys.stdin.fileno()) and os.isatty(sys.stdout.fileno())
    with connect() as client:
        sandbox = (
            Sandbox.attach(client, args.sandbox) if args.sandbox is not None else Sandbox(args.template, client=client)
        )
        try:
            process = sandbox.process(
                commands=[args.argv or shell(on_terminal=on_terminal)],
                env={"PS1": r"\w\$ ", **variables(args.env)},
                cwd=args.cwd,
                timeout_seconds=args.timeout,
                terminal=size_here() if on_terminal else None,
            )
            result = attached(process, on_terminal=on_terminal)
        finally:
            if args.sandbox is None:
                sandbox.close()
    if result.status not in ("ok", "exit", "signal"):
        output.talk(f"killed: {result.status}")
    return exit_code(result.status, result.exit_code, result.signal)
