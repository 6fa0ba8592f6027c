"""Serve sandboxes: the node in the foreground, or as `connect()` starts it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hotbed.errors import Error, NodeUnavailable

INSTALL = "pip install 'hotbed[node]'"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed node`."""
    parser = commands.add_parser(
        "node",
        help="serve sandboxes",
        description="Serve sandboxes on a Unix socket, and on TCP when a port is given, until SIGTERM.",
        epilog="Every setting can also come from HOTBED_<NAME> or from a settings file; a flag wins.",
    )
    parser.add_argument("--socket", "--uds", metavar="PATH", help="Unix socket (node.sock in the runtime directory)")
    parser.add_argument("--host", help="TCP address (127.0.0.1)")
    parser.add_argument("--port", type=int, help="TCP port (none)")
    parser.add_argument("--embedded", action="store_true", default=None, help="detach, and end after the last client")
    add_common(parser)
    return parser


def add_common(parser: argparse.ArgumentParser) -> None:
    """What `hotbed serve` takes too."""
    parser.add_argument("--settings", metavar="FILE", help="a TOML file of settings")
    parser.add_argument("--max-sandboxes", type=int, metavar="N", help="how many may live at once (by memory)")
    parser.add_argument("--boltz-slots", type=int, metavar="K", help="environments of boltz pools at work at once (0)")
    parser.add_argument("--warm", metavar="NAMES", help="templates to have ready, comma-separated (python)")
    parser.add_argument("--egress", choices=("on", "off"), help="whether policies can give sandboxes a network (on)")
    parser.add_argument(
        "--egress-tenants", metavar="CIDRS", help="private networks that tenants' policies may list, comma-separated"
    )
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"))
    parser.add_argument("--log-format", choices=("text", "json"), help="key=value fields (text), or JSON")
    parser.add_argument("--log-file", metavar="PATH", help="instead of standard error")
    parser.add_argument("--backend", choices=("fork", "fake"), help=argparse.SUPPRESS)
    parser.add_argument("--ready-fd", type=int, metavar="FD", help="write a line of JSON here once it serves, or fails")


def run(args: argparse.Namespace) -> int:
    """Serve."""
    if args.embedded:
        keep = max(2, args.ready_fd or 0)
        os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))  # whatever the client's process let us inherit
    try:
        with needing_node():
            from hotbed.server.serving import run as serve
            from hotbed.server.settings import read_settings
        settings = read_settings(vars(args))
    except Error as error:
        return refuse(error, args.ready_fd)
    serve(settings, ready_fd=args.ready_fd)
    return 0


@contextmanager
def needing_node() -> Iterator[None]:
    """Imports of what only an installation with a node has. Raises `NodeUnavailable` where there is none."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise NodeUnavailable(f"this installation has no node: {missing.name} is missing", hint=INSTALL) from None


def refuse(error: Error, ready_fd: int | None) -> int:
    """Tell whoever waits for the node, and raise."""
    if ready_fd is not None:
        os.write(ready_fd, json.dumps({"ready": False, **error.to_wire()}).encode() + b"\n")
    raise error
