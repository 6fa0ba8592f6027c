"""Hold a live sandbox still, or let it go on."""

from __future__ import annotations

import argparse

from hotbed.cli.output import Output


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed suspend SANDBOX`."""
    parser = commands.add_parser(
        "suspend",
        help="hold a live sandbox still, or resume it",
        description="Freeze every process of a sandbox and give back what memory the kernel can take. Nothing runs in "
        "it until it is resumed; its ttl goes on, its idle time does not.",
    )
    parser.add_argument("sandbox", metavar="SANDBOX", help="its id, as `hotbed ps` shows it")
    parser.add_argument("--resume", action="store_true", help="let it go on instead")
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from dataclasses import asdict

    from hotbed import connect
    from hotbed.sdk import live_calls

    output = Output.of(args)
    call = live_calls.resume if args.resume else live_calls.suspend
    with connect() as client:
        state = client.link.send(call(args.sandbox))
    if output.json:
        output.data(asdict(state))
        return 0
    freed = (
        "the kernel cannot be asked for its memory" if state.reclaimed is None else f"{state.reclaimed >> 20} MiB freed"
    )
    output.talk(f"{state.state}" if args.resume else f"{state.state} by {state.how}; {freed}")
    return 0
