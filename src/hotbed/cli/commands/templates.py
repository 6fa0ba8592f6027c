"""List templates and images; delete one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict

from hotbed.cli.output import Output
from hotbed.wire.templates import ImageRow, TemplateRow


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed templates`."""
    parser = commands.add_parser(
        "templates",
        help="list what sandboxes can be made of",
        description="List the templates of the node that HOTBED_URL names, or of this user's own.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="tell all about one, with its log")
    parser.add_argument("--images", action="store_true", help="list what templates can be made from instead")
    parser.add_argument("--delete", action="store_true", help="forget the one named, or give up its bake")
    return parser


def run(args: argparse.Namespace) -> int:
    """List them, show one or delete one."""
    from hotbed.sdk.connect import connect

    output = Output.of(args)
    if args.delete and not args.name:
        output.talk("error: --delete needs the name of a template")
        return 2
    with connect() as client:
        if args.delete:
            client.delete_template(args.name)
            return 0
        if args.images:
            show_images(client.images(), output)
            return 0
        rows = (client.template(args.name),) if args.name else client.templates()
    if output.json:
        output.data([asdict(row) for row in rows])
    elif args.name:
        show_one(rows[0], output)
    else:
        output.table(
            ("NAME", "PHASE", "IMAGE", "PYTHON", "MB", "WARM", "HITS", "LIVE STATE", "ERROR"), map(cells, rows)
        )
    return 0


def cells(row: TemplateRow) -> tuple[str, ...]:
    """A line of the list."""
    size = f"{row.size_bytes / 1e6:.0f}"
    warm = f"{row.warm}+{row.frozen} frozen" if row.frozen else str(row.warm)
    hits = f"{100 * row.warm_hits / row.forks:.0f}% of {row.forks}" if row.forks else ""
    return row.name, row.phase, row.image, row.python, size, warm, hits, row.live_state, row.error


def show_one(row: TemplateRow, output: Output) -> None:
    """All about one that is worth telling, and its log."""
    plain = asdict(row)
    text = plain.pop("log")
    output.pairs({name: value for name, value in plain.items() if value not in ("", (), {}, 0)})
    output.line(text)


def show_images(images: Iterable[ImageRow], output: Output) -> None:
    """What templates can be made from."""
    if output.json:
        output.data([asdict(image) for image in images])
        return
    cells = [
        (i.name, i.id.partition(":")[2][:12], i.visibility, f"{i.size_bytes / 1e6:.0f}", i.description) for i in images
    ]
    output.table(("IMAGE", "DIGEST", "FOR", "MB", "WHAT"), cells)
