"""Show what this host allows, which isolation results, and what to do about the rest."""

from __future__ import annotations

import argparse


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed doctor`."""
    parser = commands.add_parser("doctor", help="check this host")
    parser.add_argument("--self-check", action="store_true", help="also attack a sandbox of this host")
    return parser


def run(args: argparse.Namespace) -> int:
    """Check it."""
    return 0
