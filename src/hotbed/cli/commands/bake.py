"""Bake a template: from options, or from the hotbed.toml of a repository."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from hotbed.cli import recipes
from hotbed.cli.baking import Live
from hotbed.cli.output import Output


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed bake`."""
    parser = commands.add_parser(
        "bake",
        help="make a template from an image",
        description="Make a template and wait until it is live. Options win over the file.",
    )
    parser.add_argument(
        "file", nargs="?", metavar="PATH", help="a hotbed.toml, or the directory that has one (default: none)"
    )
    parser.add_argument("--name", help="what sandboxes are made of")
    parser.add_argument(
        "--image", help="host, template:NAME, oci:DIR[:TAG], docker-archive:FILE, rootfs:PATH, NAME[:TAG]"
    )
    parser.add_argument("--setup", action="append", metavar="COMMAND", help="run once over the image (repeatable)")
    parser.add_argument("--preload", action="append", metavar="MODULE", help="a Python module to import (repeatable)")
    parser.add_argument("--warm-cmd", metavar="COMMAND", help='runs code in another language, as "ruby -"')
    parser.add_argument("--env", action="append", metavar="NAME=VALUE", help="a variable (repeatable)")
    parser.add_argument("--limit", action="append", metavar="NAME=NUMBER", help="a limit of its sandboxes (repeatable)")
    parser.add_argument(
        "--egress", metavar="POLICY", help="what setup and its sandboxes may reach: open, a preset, or JSON"
    )
    parser.add_argument("--ready-cmd", metavar="COMMAND", help="has to exit 0, or to start what answers")
    parser.add_argument("--ready-http", metavar="URL", help="has to answer 2xx")
    parser.add_argument(
        "--ready-port", action="append", type=int, metavar="N", help="has to be listened on (repeatable)"
    )
    parser.add_argument("--ready-timeout", type=float, metavar="S", help="for how long it may take (default: 300)")
    parser.add_argument("--width", type=int, metavar="N", help="how many are expected at once (default: 1)")
    parser.add_argument("--timeout", type=float, default=3600.0, metavar="S", help="wait this long (default: 3600)")
    return parser


def run(args: argparse.Namespace) -> int:
    """Bake it, and say how far it is."""
    from hotbed.sdk.connect import connect
    from hotbed.sdk.template import Template

    output = Output.of(args)
    recipe: dict[str, Any] = recipes.of_file(args.file) if args.file else {}
    recipe = recipes.with_options(recipe, args)
    try:
        with connect() as client, Live(output) as live:
            template = Template.bake(client, **recipe, timeout_s=args.timeout, on_progress=live.show)
    except KeyboardInterrupt:
        output.talk(f"the bake goes on with its node; `hotbed templates {recipe['name']} --delete` gives it up")
        raise
    row = template.row
    if output.json:
        output.data(asdict(row))
        return 0
    python = row.python or ("none" if any("Python" in note for note in row.notes) else "this machine's")
    about = {"image": row.image, "python": python, "layers": row.layers}
    output.line(f"{output.paint('live', 'green')}  {row.name}")
    output.pairs({**about, "size": f"{row.size_bytes / 1e6:.0f} MB", "live state": row.live_state})
    for note in (*row.notes, *(f"{count} {what} left out" for what, count in row.skipped.items())):
        output.line(f"  note: {note}")
    return 0
