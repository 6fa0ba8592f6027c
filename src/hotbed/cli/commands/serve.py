"""Serve sandboxes to others: a node that outlives its clients, on a Unix socket and on TCP."""

from __future__ import annotations

import argparse

from hotbed.cli.commands import node

PORT = 8080  # as in hotbed.server.settings, which the base installation cannot import


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed serve`."""
    parser = commands.add_parser(
        "serve",
        help="serve sandboxes to others",
        description=f"Serve our API and the published client's on 127.0.0.1:{PORT} and on this user's Unix socket. "
        "Another address needs TLS and keys (`hotbed keys create`).",
        epilog="Every setting can also come from HOTBED_<NAME> or from a settings file; a flag wins.",
    )
    parser.add_argument(
        "--uds", "--socket", dest="socket", metavar="PATH", help="Unix socket (node.sock in the runtime directory)"
    )
    parser.add_argument("--host", help="TCP address (127.0.0.1)")
    parser.add_argument("--port", type=int, help=f"TCP port ({PORT})")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain (PEM)")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key (PEM)")
    parser.add_argument(
        "--public-url", metavar="URL", help="where clients reach this server, if not by the address that they ask it by"
    )
    parser.add_argument(
        "--insecure", action="store_true", default=None, help="serve another address without TLS or without keys"
    )
    node.add_common(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Serve."""
    args.shared, args.embedded = True, None
    return node.run(args)
